"""Brings flavors, topology and the state of hosts in step with Nova every so often."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.period import SECOND
from moorage.usecases.ledger.host_states import sync_services
from moorage.usecases.ledger.nova_sync import sync_flavors, sync_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.domain.nova_hosts import NovaHost
    from moorage.domain.period import Duration
    from moorage.domain.topology_rules import TopologyRules
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ledger.host_states import ServiceChange
    from moorage.usecases.ledger.nova_sync import FlavorSync, TopologySync
    from moorage.usecases.ports import Caller

_log = logging.getLogger(__name__)

_SOON_SECONDS: Final = 10.0
"""Least seconds from one round to the next, whatever Nova says meanwhile."""


@dataclass(frozen=True, slots=True)
class NovaLists:
    """How Nova is read, and where the rules are; each is called in every round."""

    flavors: Callable[[], Sequence[object]]
    hosts: Callable[[], Sequence[NovaHost]]
    rules: Callable[[], TopologyRules] | None
    """None: the topology is left alone."""


@dataclass
class NovaSync:
    """The rounds. A replica that finds everything in step writes nothing."""

    env: UseCaseEnvironment
    caller: Caller
    lists: NovaLists
    interval: Duration
    running: bool = False
    """Whether a round is under way: what it has read may be older than what Nova notifies of."""
    _began: float = float("-inf")
    _next: float = 0.0
    _refused: frozenset[str] = field(default_factory=frozenset)
    """Refusals that were logged: they are again when they change."""

    def run_round(self) -> bool:
        """Bring everything in step if it is time; always False: there is never more at once.

        Raises:
            MoorageError: Nova, the rules or the ledger cannot be read; the next round tries again.
        """
        began = self.env.stopwatch()
        if began < self._next:
            return False
        self._began, self._next = began, began + self.interval / SECOND
        self.running = True
        try:
            self._sync()
        finally:
            self.running = False
        return False

    def _sync(self) -> None:
        # Only administrators may list hosts. Others are shown the public flavors as if all.
        hosts = self.lists.hosts()
        log_services(sync_services(self.env, self.caller, hosts))
        self._log_flavors(sync_flavors(self.env, self.caller, self.lists.flavors()))
        if self.lists.rules is not None:
            rules = self.lists.rules()
            _log_topology(sync_topology(self.env, self.caller, rules, hosts))

    def hasten(self) -> None:
        """Run the next round soon: Nova has said something that only its lists explain."""
        self._next = min(self._next, self._began + _SOON_SECONDS)

    def _log_flavors(self, found: FlavorSync) -> None:
        if found.steps:
            counts = len(found.created), len(found.changed), len(found.deleted)
            _log.info("flavors of Nova: %d created, %d changed, %d deleted", *counts)
        refused = frozenset(f"{one.name}: {one.why}" for one in found.refused)
        for one in sorted(refused - self._refused):
            _log.warning("flavor of Nova refused: %s", one)
        self._refused = refused


def log_services(changes: Iterable[ServiceChange]) -> None:
    """Log hosts of which Nova says something else than before."""
    for one in changes:
        _log.info("host %s by Nova: %s -> %s", one.host, _word(one.before), _word(one.after))


def _word(why: Sequence[str]) -> str:
    return ", ".join(why) or "in service"


def _log_topology(found: TopologySync) -> None:
    for one in found.moves:
        _log.info("host %s in tree %s: %s -> %s", one.host, one.tree, one.before, one.after)
