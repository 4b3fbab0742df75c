"""`/v1/templates`: descriptions with parameters, in versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moorage.client.answer import Answer, answer, converted, dry, whole
from moorage.client.lookup import pages
from moorage.wire.ensembles import OneEnsemble
from moorage.wire.templates import Template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Transport


class Templates:
    """Calls for templates, which are named by id, name, or a version of either: `upf@3`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._call = transport.call

    def create(self, template: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Template]:
        """Create a template."""
        reply = self._call(
            "POST", "/v1/templates", body={"template": template}, params=dry(dry_run)
        )
        return answer(reply, "template", Template)

    def revise(
        self, name: str, template: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Template]:
        """Add its next version."""
        reply = self._call(
            "POST",
            f"/v1/templates/{quote(name)}/versions",
            body={"template": template},
            params=dry(dry_run),
        )
        return answer(reply, "template", Template)

    def all(self) -> Answer[list[Template]]:
        """Every visible template, in its newest version."""
        found = list(pages(self._transport, "/v1/templates", "templates"))
        return Answer(converted(found, list[Template]), {"templates": found})

    def show(self, name: str) -> Answer[Template]:
        """The newest version, or the given one."""
        return answer(self._call("GET", f"/v1/templates/{quote(name)}"), "template", Template)

    def delete(self, name: str) -> None:
        """Delete every version."""
        self._call("DELETE", f"/v1/templates/{quote(name)}")

    def instantiate(
        self, name: str, instance: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneEnsemble]:
        """Create an ensemble from a template; with `decide` place and hold it at once."""
        reply = self._call(
            "POST",
            f"/v1/templates/{quote(name)}/instances",
            body={"instance": instance},
            params=dry(dry_run),
        )
        return whole(reply, OneEnsemble)
