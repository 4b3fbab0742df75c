"""Follows Nova's server groups, and judges what it has created in one request or one group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.errors import MoorageError
from moorage.domain.nova_groups import NovaGroup
from moorage.domain.period import SECOND
from moorage.domain.servers import Server
from moorage.shadow.joint_placement import judge
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.ensembles.group_takeover import (
    ensemble_of_servers,
    take_over_groups,
    without_group,
)
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration
    from moorage.shadow.boot_servers import CreatedServers
    from moorage.shadow.report import JointCase
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

_log = logging.getLogger(__name__)

SETTLED: Final = 5.0
"""Seconds without another server after which a request's servers are all there."""
NovaLists: TypeAlias = Callable[[], tuple[Sequence[NovaGroup], Mapping[str, Server]]]
"""Reads the server groups and the servers of a running Nova."""


@dataclass
class NovaFollower:
    """The rounds. Nova is only read; server groups become ensembles of the shadow's own ledger."""

    env: UseCaseEnvironment
    caller: Caller
    read: NovaLists
    created: CreatedServers
    tell: Callable[[JointCase], None]
    interval: Duration
    _next: float = 0.0

    def run_round(self) -> bool:
        """Follow, and judge what has settled, if it is time; always False: it is all done at once.

        Raises:
            MoorageError: Nova or the ledger cannot be read; the next round tries again.
        """
        began = self.env.stopwatch()
        if began < self._next:
            return False
        self._next = began + self.interval / SECOND
        groups, servers = self.read()
        for outcome in take_over_groups(self.env, self.caller, groups, servers):
            if outcome.refused is not None:
                _log.warning("server group %s: %s", outcome.group.id, outcome.refused)
        for gone in without_group(self.env.store, self.caller, groups):
            delete_ensemble(self.env, self.caller, gone.id, None)
        self._judge(groups, servers)
        return False

    def _judge(self, groups: Sequence[NovaGroup], servers: Mapping[str, Server]) -> None:
        group_of = {server.lower(): one for one in groups for server in one.members}
        judged: set[str] = set()
        for request, made in self.created.take(time.monotonic() - SETTLED).items():
            group = next((group_of[one] for one in made if one in group_of), None)
            if group is None:
                of, ensemble = f"request {request}", self._of_request(request, made, servers)
            elif group.id in judged:
                continue
            else:
                judged.add(group.id)
                of, ensemble = f"group {group.name}", if_stored(self.env.store.ensemble, group.id)
            if ensemble is None:
                continue
            try:
                case = judge(self.env, of, ensemble)
            except MoorageError as error:
                _log.warning("%s cannot be decided jointly: %s", of, error.message)
                continue
            if case is not None:
                self.tell(case)

    def _of_request(
        self, request: str, made: Sequence[str], servers: Mapping[str, Server]
    ) -> Ensemble | None:
        there = [one for one in made if one in servers]
        if not there:
            return None
        return ensemble_of_servers(self.env, request, there, servers)
