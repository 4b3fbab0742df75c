"""Moves servers in Nova: live and cold migrations to a host, and evacuations, never forced.

Each request to Nova has the id `req-<server's UUID>`, by which Placement's requests for it find the
place that is held for the server. Nova's scheduler judges each target. A cold migration is
confirmed when it waits for that.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from moorage.domain.period import FOREVER, MINUTE, Duration, Instant, format_instant
from moorage.domain.plan_progress import MoveProgress, MoveReport
from moorage.domain.plans import MoveKind
from moorage.outward.nova import compute_adapter
from moorage.outward.timeout import call_with_timeout
from moorage.usecases.effect_dispatch import OutwardFailure
from moorage.usecases.plan_ports import MoveRefused, MoverUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.plans import Move

VERSION: Final = "compute 2.68"
"""The first in which a target host cannot be forced (Stein)."""
_ACCEPTED: Final = 202
_GOOD: Final = 200
_GONE: Final = 404
_CONFLICT: Final = 409
_REFUSALS: Final = range(400, 500)
_SKEW: Final = MINUTE
"""By how much Nova's clock may be behind this one's, for which migrations are this move's."""
_OVER: Final = frozenset({"completed", "confirmed", "finished", "done", "reverted"})
_COLD: Final = "migration"
_KINDS: Final = MappingProxyType(
    {MoveKind.LIVE: "live-migration", MoveKind.COLD: _COLD, MoveKind.EVACUATE: "evacuation"}
)
"""How Nova calls these moves; a server that is stopped is moved as `_COLD` in any case."""
_BROKEN: Final = frozenset({"error", "failed", "cancelled"})


class NovaMover:
    """A `ServerMover` that asks the compute API."""

    def __init__(self, section: Mapping[str, str], timeout: float) -> None:
        """Read the section [nova].

        Raises:
            InvalidDescription: the packages or an option are missing.
        """
        self._timeout = timeout
        self._compute = compute_adapter(section, timeout, "move_servers")

    @property
    def patience(self) -> Duration:
        """See `ServerMover`: Nova may still work on a request that was not answered."""
        return 2 * MINUTE

    def begin(self, move: Move) -> None:
        """See `ServerMover`.

        Raises:
            MoveRefused: Nova does not move the server, or not there.
            MoverUnreachable: Nova does not answer.
        """
        status, answer = self._call(
            "POST", f"/servers/{move.server}/action", move, self._body(move)
        )
        if status in {_ACCEPTED, _GOOD}:
            return
        if status in _REFUSALS:
            raise MoveRefused(f"Nova answered {status}: {_message(answer)}")
        raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")

    def report(self, move: Move) -> MoveReport:
        """See `ServerMover`. A cold migration that waits to be confirmed is confirmed by this.

        Raises:
            MoverUnreachable: Nova does not answer, or refuses to.
        """
        status, answer = self._call("GET", f"/servers/{move.server}", move)
        if status == _GONE:
            return MoveReport(MoveProgress.GONE, "Nova does not know the server any more")
        if status != _GOOD:
            raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")
        server = _server(answer)
        busy = server.get("OS-EXT-STS:task_state")
        if busy is not None:
            return MoveReport(MoveProgress.RUNNING, str(busy))
        last = self._migration(move)
        if server.get("status") == "VERIFY_RESIZE":
            if last is not None and last.get("migration_type") == _COLD:
                return self._confirmed(move)
            return MoveReport(MoveProgress.FAILED, "somebody else resizes or migrates it")
        state = "" if last is None else str(last["status"])
        if state and state not in _OVER | _BROKEN:
            return MoveReport(MoveProgress.RUNNING, state)
        return _judged(move, server, state)

    def next_end(self, move: Move) -> Instant:  # noqa: ARG002 - the protocol's
        """See `ServerMover`: nobody knows."""
        return FOREVER

    def _body(self, move: Move) -> dict[str, object]:
        target = self._service_host(move)
        match move.kind:
            case MoveKind.LIVE if self._is_stopped(move):
                return {"migrate": {"host": target}}
            case MoveKind.LIVE:
                return {"os-migrateLive": {"host": target, "block_migration": "auto"}}
            case MoveKind.COLD:
                return {"migrate": {"host": target}}
            case MoveKind.EVACUATE:
                return {"evacuate": {"host": target}}

    def _is_stopped(self, move: Move) -> bool:
        """Whether the server does not run: Nova refuses to migrate it live.

        Raises:
            MoveRefused: Nova does not know it.
            MoverUnreachable: it does not answer.
        """
        status, answer = self._call("GET", f"/servers/{move.server}", move)
        if status == _GONE:
            raise MoveRefused("Nova does not know the server any more")
        if status != _GOOD:
            raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")
        return _server(answer).get("status") == "SHUTOFF"

    def _service_host(self, move: Move) -> str:
        """The compute service of the target, which need not be called like its hypervisor.

        Raises:
            MoveRefused: Nova has no such hypervisor.
            MoverUnreachable: it does not answer.
        """
        name = move.target_name
        path = f"/os-hypervisors/detail?hypervisor_hostname_pattern={quote(name, safe='')}"
        status, answer = self._call("GET", path, move)
        if status not in {_GOOD, _GONE}:
            raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")
        for one in answer.get("hypervisors", ()) if status == _GOOD else ():
            if one["hypervisor_hostname"] == name:
                return str(one["service"]["host"])
        raise MoveRefused(f"Nova has no hypervisor {name}")

    def _confirmed(self, move: Move) -> MoveReport:
        body: dict[str, object] = {"confirmResize": None}
        status, answer = self._call("POST", f"/servers/{move.server}/action", move, body)
        if status not in {204, _ACCEPTED, _CONFLICT}:
            raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")
        return MoveReport(MoveProgress.RUNNING, "it is confirmed")

    def _migration(self, move: Move) -> Mapping[str, Any] | None:
        """Nova's latest migration of the server since the move began; None: there is none.

        Raises:
            MoverUnreachable: Nova does not answer, or refuses to.
        """
        since = format_instant(max((move.began_at or 0) - _SKEW, 0))
        path = f"/os-migrations?instance_uuid={move.server}&changes-since={quote(since, safe='')}"
        status, answer = self._call("GET", path, move)
        if status != _GOOD:
            raise MoverUnreachable(f"Nova answered {status}: {_message(answer)}")
        found = [one for one in answer.get("migrations", ()) if self._is_of(move, one)]
        return max(found, key=lambda one: str(one["created_at"]), default=None)

    def _is_of(self, move: Move, migration: Mapping[str, Any]) -> bool:
        """Whether a migration may be this move's: by its kind, and as it leads to the target."""
        kinds = {None, _KINDS[move.kind], *({_COLD} if move.kind is MoveKind.LIVE else ())}
        there = migration.get("dest_node") in {None, move.target_name}
        return there and migration.get("migration_type") in kinds

    def _call(
        self, method: str, path: str, move: Move, body: Mapping[str, object] | None = None
    ) -> tuple[int, Any]:
        """Status, and the JSON of the answer or nothing.

        Raises:
            MoverUnreachable: Keystone or Nova does not answer.
        """
        from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra, slow to import

        headers = {
            "OpenStack-API-Version": VERSION,
            "X-OpenStack-Request-ID": f"req-{move.server}",
        }

        def call() -> Any:  # noqa: ANN401 - the library's answer
            return self._compute.request(path, method, json=body, headers=headers, raise_exc=False)

        try:
            answer = call_with_timeout(self._timeout, "Nova", call)
        except (exceptions.ClientException, OutwardFailure) as error:
            raise MoverUnreachable(f"Nova: {error}") from error
        try:
            return int(answer.status_code), answer.json() if answer.content else {}
        except ValueError:
            return int(answer.status_code), {}


def _judged(move: Move, server: Mapping[str, Any], migration: str) -> MoveReport:
    """The report of a server that is not moving; `migration` is the state of its last one."""
    stands = server.get("OS-EXT-SRV-ATTR:hypervisor_hostname")
    if stands == move.target_name:
        return MoveReport(MoveProgress.DONE)
    if server.get("status") == "ERROR":
        fault = server.get("fault", {}).get("message", "no reason is given")
        return MoveReport(MoveProgress.FAILED, f"the server is in error: {fault}")
    if migration in _BROKEN:
        return MoveReport(MoveProgress.FAILED, f"Nova's migration ended as {migration}")
    if stands != move.source_name:
        return MoveReport(MoveProgress.FAILED, f"the server is on {stands} by now")
    return MoveReport(MoveProgress.IDLE)


def _server(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The server in an answer. Raises MoverUnreachable: there is none."""
    found = answer.get("server")
    if not isinstance(found, dict):
        raise MoverUnreachable("Nova's answer has no server")
    return found


def _message(answer: Mapping[str, Any]) -> str:
    """The reason in an answer of Nova's: the message of its one fault."""
    for fault in answer.values():
        if isinstance(fault, dict) and "message" in fault:
            return str(fault["message"])
    return "no reason is given"
