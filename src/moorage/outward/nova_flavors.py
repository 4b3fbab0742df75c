"""Creates and deletes ticket flavors in Nova, with the credentials of the section [nova].

Each call may be repeated: a flavor that is there, an access that is given, and a flavor that is
gone count as done. A call that is late sends no further request. Compute API: flavors, their extra
specs, and `addTenantAccess`.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.effects import EffectKind
from moorage.outward.nova import compute_adapter
from moorage.outward.timeout import call_with_timeout
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effect_dispatch import Message

_CONFLICT: Final = 409
_GONE: Final = 404
_GOOD: Final = range(200, 300)


class NovaFlavors:
    """A client of the compute API for flavors."""

    def __init__(self, section: Mapping[str, str], timeout: float) -> None:
        """Read the section.

        Raises:
            InvalidDescription: the packages or an option are missing.
        """
        self._timeout = timeout
        self._compute = compute_adapter(section, timeout, "ticket_flavors")

    def __call__(self, message: Message) -> str:
        """Create the message's flavors for its project, or delete them.

        Raises:
            OutwardFailure: Keystone or Nova refuses, fails, or does not answer in time.
        """
        until = monotonic() + self._timeout
        calls = _Calls(self._compute, until)
        return call_with_timeout(self._timeout, "Nova", lambda: calls.act(message))


@dataclass(frozen=True, slots=True)
class _Calls:
    """The requests of one call; none is sent after its time limit."""

    compute: Any
    until: float
    """On the monotonic clock."""

    def act(self, message: Message) -> str:
        """Create or delete the message's flavors; return the outcome.

        Raises:
            OutwardFailure: Keystone or Nova refuses or fails, or the time is over.
        """
        details: Any = message.body["details"]
        project = str(message.body["project_id"])
        if message.body["kind"] == EffectKind.CREATE_FLAVORS:
            for flavor in details["flavors"]:
                self._create(dict(flavor), project)
            return f"{len(details['flavors'])} flavors created"
        for flavor_id in details["flavors"]:
            self._call("DELETE", f"/flavors/{flavor_id}", None, done=_GONE)
        return f"{len(details['flavors'])} flavors deleted"

    def _create(self, flavor: dict[str, Any], project: str) -> None:
        specs, path = flavor.pop("extra_specs"), f"/flavors/{flavor['id']}"
        body = {**flavor, "os-flavor-access:is_public": False}
        self._call("POST", "/flavors", {"flavor": body}, done=_CONFLICT)
        self._call("POST", f"{path}/os-extra_specs", {"extra_specs": specs})
        access = {"addTenantAccess": {"tenant": project}}
        self._call("POST", f"{path}/action", access, done=_CONFLICT)

    def _call(self, method: str, path: str, body: object, *, done: int | None = None) -> None:
        """Send one request; `done` is a status that says that it was done before."""
        from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra, slow to import

        if monotonic() >= self.until:
            raise OutwardFailure("Nova did not answer in time")
        try:
            answer = self.compute.request(path, method, json=body, raise_exc=False)
        except exceptions.ClientException as error:
            raise OutwardFailure(f"Nova: {error}") from error
        if answer.status_code not in _GOOD and answer.status_code != done:
            raise OutwardFailure(f"Nova answered {answer.status_code} to {method} {path}")
