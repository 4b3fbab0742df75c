"""Who may do what: route by role, and where the profiles differ."""

from typing import Any

import pytest

from moorage.api.placement.access import DEFAULT, NEW_DEFAULTS
from moorage.api.placement.routes import TABLE

ROUTES = [(method, path, rule) for method, path, _, _, rule in TABLE if rule]
ITEMS = {"uuid": "u", "resource_class": "VCPU", "name": "X", "consumer_uuid": "c"}


def call(wire: Any, method: str, path: str, **headers: str | None) -> Any:
    return wire(
        method, path.format(**ITEMS), headers={"content-type": "application/json"} | headers
    )


@pytest.mark.parametrize(("method", "path", "rule"), ROUTES)
def test_only_admin_and_service_pass_every_route(
    wire: Any, method: str, path: str, rule: str
) -> None:
    for roles in ("", "member", "reader", "member,reader,auditor"):
        answer = call(wire, method, path, **{"x-roles": roles})
        assert answer.status == 403, (roles, answer.raw)
        assert f"Policy does not allow {rule} to be performed." in answer.detail
    for roles in ("admin", "service", "Member, SERVICE"):
        assert call(wire, method, path, **{"x-roles": roles}).status != 403
    scoped = call(wire, method, path, **{"openstack-system-scope": "all"})
    assert scoped.status == 403


def test_a_reader_sees_the_usages_of_its_own_project(wire: Any) -> None:
    def usages(project: str) -> int:
        headers = {"x-roles": "reader", "x-auth-token": "someone:mine"}
        return int(wire("GET", f"/usages?project_id={project}", headers=headers).status)

    assert usages("mine") == 200
    assert usages("yours") == 403


@pytest.mark.parametrize("access", [DEFAULT, NEW_DEFAULTS], ids=["old", "new"])
def test_profiles_differ_where_they_should(wire_with: Any, access: Any) -> None:
    wire = wire_with(access)

    def passes(method: str, path: str, roles: str) -> bool:
        return bool(call(wire, method, path, **{"x-roles": roles}).status != 403)

    assert passes("POST", "/reshaper", "service")
    assert passes("POST", "/reshaper", "admin") == (access is not NEW_DEFAULTS)
    assert not passes("GET", "/resource_providers", "member")
