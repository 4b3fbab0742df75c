"""Who may do what when Keystone says who is who: roles, scopes, and Keystone in trouble."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.scenarios.keystone.conftest import PASSWORD, Answer, Identity, call
from tests.scenarios.processes.conftest import Served

# Whoever is first also waits until Keystone is set up: five programs of several seconds each.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]

LIST = "/placement/resource_providers"


def project(name: str) -> dict[str, Any]:
    return {"project": {"name": name, "domain": {"id": "default"}}}


SYSTEM = {"system": {"all": True}}
ALL_SHUT = (403, 403, 403, 403, 403)


def ask(served: Served, method: str, path: str, body: object = None, **headers: str) -> Answer:
    return call(method, f"http://127.0.0.1:{served.port}{path}", body, **headers)


@pytest.mark.parametrize(
    ("user", "scope", "expected"),
    [
        # Placement's list and reshaper; the ensembles of the project, a new one; the fleet
        ("admin", project("admin"), (200, 400, 200, 400, 200)),
        ("admin-of-shop", project("shop"), (200, 400, 200, 400, 200)),
        ("nova", project("service"), (200, 400, 200, 400, 200)),
        ("member-of-shop", project("shop"), (403, 403, 200, 400, 403)),
        ("reader-of-shop", project("shop"), (403, 403, 200, 403, 403)),
        # Roles called `member,admin` and `member, admin `: one name each, which no rule knows.
        ("comma-of-shop", project("shop"), ALL_SHUT),
        ("spaces-of-shop", project("shop"), ALL_SHUT),
        ("admin", SYSTEM, ALL_SHUT),
        ("watcher", SYSTEM, ALL_SHUT),
        ("nobody", None, ALL_SHUT),
    ],
)
def test_roles_and_scopes_open_what_they_should(
    people: Identity, guarded: Served, user: str, scope: Any, expected: tuple[int, ...]
) -> None:
    headers = {
        "x_auth_token": people.token(user, scope),
        "openstack_api_version": "placement 1.39",
        # What a client says of itself counts for nothing.
        "x_roles": "admin",
        "x_project_id": "other",
        "x_identity_status": "Confirmed",
        "x_user_id": "root",
    }
    seen = tuple(
        ask(guarded, method, path, body, **headers).status
        for method, path, body in (
            ("GET", LIST, None),
            ("POST", "/placement/reshaper", {}),
            ("GET", "/v1/ensembles", None),
            ("POST", "/v1/ensembles", {}),
            ("GET", "/v1/fleet", None),
        )
    )
    assert seen == expected


def test_newer_defaults_and_metrics_by_role_and_scope(
    people: Identity, start_guarded: Callable[..., Served]
) -> None:
    far = ("--metrics-from", "192.0.2.0/24")
    served = start_guarded(people.url, "--enforce-new-defaults", *far)
    seen = {}
    for user, scope in (
        ("admin", project("admin")),
        ("admin-of-shop", project("shop")),
        ("nova", project("service")),
        ("member-of-shop", project("shop")),
        ("reader-of-shop", project("shop")),
        ("admin", SYSTEM),
        ("watcher", SYSTEM),
    ):
        headers = {
            "x_auth_token": people.token(user, scope),
            "openstack_api_version": "placement 1.39",
        }
        where = "system" if scope is SYSTEM else "project"
        seen[f"{user} in {where} {scope.get('project', {}).get('name', '')}".strip()] = tuple(
            ask(served, method, path, body, **headers).status
            for method, path, body in (
                ("GET", LIST, None),
                ("POST", "/placement/reshaper", {}),
                ("GET", "/metrics", None),
            )
        )
    assert seen == {
        "admin in project admin": (200, 403, 200),
        "admin-of-shop in project shop": (200, 403, 200),
        "nova in project service": (200, 400, 200),
        "member-of-shop in project shop": (403, 403, 403),
        "reader-of-shop in project shop": (403, 403, 403),
        "admin in system": (403, 403, 403),
        "watcher in system": (403, 403, 403),
    }
    assert ask(served, "GET", "/metrics").status == 401


def test_a_reader_sees_the_usages_of_its_own_project(people: Identity, guarded: Served) -> None:
    token = people.token("reader-of-shop", project("shop"))

    def usages(name: str) -> int:
        path = f"/placement/usages?project_id={people.id_of('projects', name)}"
        headers = {"x_auth_token": token, "openstack_api_version": "placement 1.39"}
        return ask(guarded, "GET", path, **headers).status

    assert (usages("shop"), usages("other")) == (200, 403)


def test_without_a_valid_token_is_401_and_where_to_get_one(
    people: Identity, guarded: Served
) -> None:
    for headers in ({}, {"x_auth_token": ""}, {"x_auth_token": "admin"}):
        refused = ask(guarded, "GET", LIST, **headers)
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == f'Keystone uri="{people.url}"'
        assert refused.json == {
            "error": {
                "code": 401,
                "title": "Unauthorized",
                "message": "The request you have made requires authentication.",
            }
        }
        native = ask(guarded, "GET", "/v1/ensembles", **headers)
        assert native.status == 401
        assert native.headers["www-authenticate"] == f'Keystone uri="{people.url}"'
        assert native.json["errors"][0]["code"] == "http.unauthorized"


def test_paths_open_to_all_ask_nobody(guarded: Served) -> None:
    for path in ("/", "/healthz", "/readyz", "/placement", "/placement/", "/v1/", "/v1"):
        assert ask(guarded, "GET", path).status == 200, path
        assert ask(guarded, "GET", path, x_auth_token="nonsense").status == 200, path


def test_a_revoked_token_ends_when_it_is_forgotten(
    people: Identity, start_guarded: Callable[..., Served]
) -> None:
    served = start_guarded(people.url, token_cache_time="1")
    token = people.token("nova", project("service"))
    assert ask(served, "GET", LIST, x_auth_token=token).status == 200
    headers = {"x_auth_token": people.admin, "x_subject_token": token}
    assert call("DELETE", f"{people.url}/auth/tokens", **headers).status == 204
    time.sleep(1.1)
    assert ask(served, "GET", LIST, x_auth_token=token).status == 401


def test_a_service_that_keystone_refuses_says_503_not_401(
    people: Identity, start_guarded: Callable[..., Served]
) -> None:
    served = start_guarded(people.url, password="wrong-horse")
    token = people.token("nova", project("service"))
    refused = ask(served, "GET", LIST, x_auth_token=token)
    assert refused.status == 503
    assert refused.headers["retry-after"]
    assert "wrong-horse" not in served.log.read_text()


def test_keystone_out_of_reach_is_503_and_the_door_stays_open(
    people: Identity, start_guarded: Callable[..., Served]
) -> None:
    served = start_guarded("http://127.0.0.1:1/v3", http_request_max_retries="0")
    assert ask(served, "GET", LIST, x_auth_token=people.admin).status == 503
    assert ask(served, "GET", LIST).status == 401
    assert ask(served, "GET", "/").status == 200
    assert ask(served, "GET", "/healthz").status == 200


def test_the_catalog_leads_the_real_client_here(openstack: Any, guarded: Served) -> None:
    made = openstack("nova", "service", "resource", "provider", "create", "found-it", "-f", "json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["name"] == "found-it"
    refused = openstack("member-of-shop", "shop", "resource", "provider", "list")
    assert refused.returncode != 0
    assert "403" in refused.stderr


def test_no_secret_is_logged(people: Identity, guarded: Served) -> None:
    tokens = [people.token("nova", project("service")), people.token("nobody", None), people.admin]
    for token in (*tokens, "gAAAAA-forged-token"):
        ask(guarded, "GET", LIST, x_auth_token=token)
        ask(guarded, "GET", f"/v1/ensembles?token={token}", x_auth_token=token)
    log = guarded.log.read_text()
    assert "keystone" in log, "at debug much is said"
    for secret in (*tokens, "gAAAAA-forged-token", PASSWORD):
        assert secret not in log
