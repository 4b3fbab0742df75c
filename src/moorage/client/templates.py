"""`/v1/templates`: descriptions with parameters, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from moorage.client.ensembles import answer, dry, made
from moorage.client.lookup import pages
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client import structs
    from moorage.client.transport import Transport


class Template(msgspec.Struct, frozen=True):
    """One version of a template."""

    id: str
    name: str
    version: int = 1
    format: str = "moorage"
    project_id: str = ""
    shared: bool = False
    parameters: dict[str, dict[str, Any]] = {}
    source: dict[str, Any] = {}
    created_at: str | None = None


class Templates:
    """A template is named by its id, its name, or a version of either: `upf@3`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._call = transport.call

    def create(self, template: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Template]:
        """Keep a template."""
        reply = self._call(
            "POST", "/v1/templates", body={"template": template}, params=dry(dry_run)
        )
        return answer(reply, "template", Template)

    def revise(
        self, name: str, template: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Template]:
        """Keep its next version."""
        reply = self._call(
            "POST",
            f"/v1/templates/{quote(name)}/versions",
            body={"template": template},
            params=dry(dry_run),
        )
        return answer(reply, "template", Template)

    def all(self) -> Answer[list[Template]]:
        """Every template that may be used, in its newest version."""
        found = list(pages(self._transport, "/v1/templates", "templates"))
        return Answer(msgspec.convert(found, list[Template]), {"templates": found})

    def show(self, name: str) -> Answer[Template]:
        """The newest version, or the one named."""
        return answer(self._call("GET", f"/v1/templates/{quote(name)}"), "template", Template)

    def delete(self, name: str) -> None:
        """Forget every version."""
        self._call("DELETE", f"/v1/templates/{quote(name)}")

    def instantiate(
        self, name: str, instance: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[structs.Created]:
        """Make an ensemble of it; with `decide` placed and held at once."""
        reply = self._call(
            "POST",
            f"/v1/templates/{quote(name)}/instances",
            body={"instance": instance},
            params=dry(dry_run),
        )
        return made(reply)
