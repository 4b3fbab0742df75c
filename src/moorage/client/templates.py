"""Templates of ensembles, and Heat templates placed jointly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moorage.client.resource import Resource
from moorage.wire.ensembles import OneEnsemble
from moorage.wire.hot import Hot
from moorage.wire.templates import Template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.resource import Answer


class Templates(Resource):
    """`/v1/templates`: named by id, name, or a version of either: `upf@3`."""

    path, one, many = "/v1/templates", "template", "templates"

    def create(self, template: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Template]:
        """Create a template."""
        body = {"template": template}
        return self._send("POST", "", body, Template, "template", dry_run=dry_run)

    def revise(
        self, name: str, template: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Template]:
        """Add its next version."""
        path, body = f"/{quote(name)}/versions", {"template": template}
        return self._send("POST", path, body, Template, "template", dry_run=dry_run)

    def all(self) -> Answer[list[Template]]:
        """Every visible template, in its newest version."""
        return self._all(Template)

    def show(self, name: str) -> Answer[Template]:
        """The newest version, or the given one."""
        return self._get(Template, f"/{quote(name)}")

    def delete(self, name: str) -> None:
        """Delete every version."""
        self._delete(f"/{quote(name)}")

    def instantiate(
        self, name: str, instance: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneEnsemble]:
        """Create an ensemble from a template; with `decide` place and hold it at once."""
        path, body = f"/{quote(name)}/instances", {"instance": instance}
        return self._send("POST", path, body, OneEnsemble, dry_run=dry_run)


class HotCalls(Resource):
    """`POST /v1/hot`."""

    path = "/v1/hot"

    def place(self, request: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Hot]:
        """Place a template's servers, as a new ensemble or as the one `ensemble_id` names."""
        return self._send("POST", "", {"hot": request}, Hot, dry_run=dry_run)
