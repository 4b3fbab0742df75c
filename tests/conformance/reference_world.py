"""What the reference's fixtures build on, made through the REST API of a running server.

Its fixtures make providers through the reference's own model. The few functions of that model they
call stand here, with the arguments they have there.
"""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.conformance.served import Rest

ENVIRONMENT: Final = (
    *("RP_UUID", "RP_NAME", "RP_UUID1", "RP_NAME1", "RP_UUID2", "RP_NAME2"),
    *("PROJECT_ID", "ADMIN_PROJECT_ID", "SERVICE_PROJECT_ID", "PROJECT_ID_ALT"),
    *("USER_ID", "USER_ID_ALT", "INSTANCE_UUID", "MIGRATION_UUID", "CONSUMER_UUID"),
    *("PARENT_PROVIDER_UUID", "ALT_PARENT_PROVIDER_UUID"),
)
"""Environment variables the files take their ids from."""


@contextmanager
def building_on(rest: Rest, fixtures: ModuleType) -> Iterator[None]:
    """While it lasts, the reference's fixtures build on this server, and leave it empty."""
    ids = {name: str(uuid.uuid4()) for name in ENVIRONMENT}
    ids |= {f"CUSTOM_RES_CLASS{n}": f"CUSTOM_IRON_NFV{n}" for n in ("", "1", "2")}
    with (
        patch.dict(os.environ, ids),
        patch.multiple(
            fixtures,
            tb=_Model(rest, fixtures.uuids),
            user_obj=SimpleNamespace(User=_Owner),
            project_obj=SimpleNamespace(Project=_Owner),
            rc_obj=SimpleNamespace(ResourceClass=lambda context, name: _ResourceClass(rest, name)),
        ),
        patch.multiple(
            fixtures.APIFixture, start_fixture=_start, stop_fixture=lambda _: rest.empty()
        ),
    ):
        yield


def _start(fixture: Any) -> None:
    """Settings and policies are the server's; what a fixture says of its own goes nowhere."""
    nowhere = SimpleNamespace(config=lambda **_: None, set_rules=lambda _: None)
    fixture.context, fixture.conf_fixture, fixture.policy_fixture = None, nowhere, nowhere


class _Owner:
    """A project or user; they need no rows of their own here."""

    def __init__(self, _: object, external_id: str) -> None:
        self.external_id = external_id

    def create(self) -> None:
        """There is nothing to do."""


class _ResourceClass:
    def __init__(self, rest: Rest, name: str) -> None:
        self._rest, self._name = rest, name

    def create(self) -> None:
        """Standard ones are there."""
        if self._name.startswith("CUSTOM_"):
            self._rest("PUT", f"/resource_classes/{self._name}")


class _Provider:
    def __init__(self, rest: Rest, uuid: str) -> None:
        self.rest, self.uuid, self.path = rest, uuid, f"/resource_providers/{uuid}"

    def set_aggregates(self, members: object) -> None:
        """At 1.1, which leaves the generation alone."""
        self.rest("PUT", f"{self.path}/aggregates", members, "1.1")


class _Model:
    """The functions of the reference's `test_base`."""

    def __init__(self, rest: Rest, uuids: object) -> None:
        self._rest, self._uuids = rest, uuids

    def create_provider(self, _: object, name: str, *aggregates: str, **given: str) -> _Provider:
        own = given.get("uuid") or str(getattr(self._uuids, name))
        body = {"name": name, "uuid": own, "parent_provider_uuid": given.get("parent")}
        self._rest("POST", "/resource_providers", body)
        made = _Provider(self._rest, own)
        if aggregates:
            made.set_aggregates(aggregates)
        return made

    def add_inventory(self, at: _Provider, resource_class: str, total: int, **more: Any) -> None:
        _ResourceClass(self._rest, resource_class).create()
        body = {"resource_class": resource_class, "total": total, "max_unit": total, **more}
        self._rest("POST", f"{at.path}/inventories", body)

    def set_traits(self, at: _Provider, *traits: str) -> None:
        for name in traits:
            if name.startswith("CUSTOM_"):
                self._rest("PUT", f"/traits/{name}")
        generation = self._rest("GET", at.path)["generation"]
        body = {"traits": traits, "resource_provider_generation": generation}
        self._rest("PUT", f"{at.path}/traits", body)

    def ensure_consumer(self, _: object, user: _Owner, project: _Owner) -> Any:
        return SimpleNamespace(
            uuid=str(uuid.uuid4()), user=user.external_id, project=project.external_id
        )

    def set_allocation(
        self, _: object, at: _Provider, consumer: Any, amounts: Mapping[str, int]
    ) -> None:
        body = {
            "allocations": {at.uuid: {"resources": amounts}},
            "project_id": consumer.project,
            "user_id": consumer.user,
        }
        self._rest("PUT", f"/allocations/{consumer.uuid}", body, "1.12")

    def create_user_and_project(self, _: object, prefix: str) -> tuple[_Owner, _Owner]:
        return _Owner(None, f"{prefix}-user"), _Owner(None, f"{prefix}-project")
