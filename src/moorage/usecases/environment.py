"""The whole environment of use cases: a decision's, and the process's own memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self

from moorage.usecases.decide.environment import DecideEnvironment
from moorage.usecases.shared.admission import Admission, SeriesInProgress
from moorage.usecases.shared.kept_answers import KeptAnswers
from moorage.usecases.shared.kept_maps import KeptMaps
from moorage.usecases.shared.waitlist_memory import WaitlistMemory

if TYPE_CHECKING:
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.usecases.ports import HypotheticalStore, Store
    from moorage.usecases.shared.lease_check import LeaseCheck


class TriesEntry(Protocol):
    """Grants an entry of the waitlist if it fits now; see `waitlist.attempt`."""

    def __call__(self, env: UseCaseEnvironment, entry: WaitlistEntry, seconds: float) -> bool:
        """Try the entry, searching for at most `seconds`; whether it no longer waits."""


@dataclass(frozen=True, slots=True)
class UseCaseEnvironment(DecideEnvironment):
    """The ports, limits and strategies that a use case works with."""

    try_entry: TriesEntry
    """Tries an entry of the waitlist that comes before a request."""
    check: LeaseCheck | None = None
    """The operator's external check of leases, if one is configured."""
    admission: Admission = field(default_factory=Admission, compare=False)
    """Limits how many expensive requests this process runs at once."""
    waitlist_memory: WaitlistMemory = field(default_factory=WaitlistMemory, compare=False)
    """Failed attempts at waitlist entries, as this process remembers them."""
    moves_servers: bool = False
    """Whether this service carries plans out."""
    kept_maps: KeptMaps = field(default_factory=KeptMaps, compare=False)
    """Maps of the fleet that this process has made."""
    kept_answers: KeptAnswers = field(default_factory=KeptAnswers, compare=False)
    """Other answers that many ask for, as this process has made them."""
    series_in_progress: SeriesInProgress = field(default_factory=SeriesInProgress, compare=False)
    """The series that this process is creating."""

    def in_dry_run(self, *, explained: bool = False) -> Self:
        """See `Environment`. Nobody else is asked or kept waiting, nor granted anything."""
        return self._writing_nothing(self.store.dry_run(explained=explained))

    def over(self, store: HypotheticalStore) -> Self:
        """The environment over a ledger as it would be, as if in a dry run."""
        return replace(self._writing_nothing(store), kept_maps=KeptMaps())

    def _writing_nothing(self, store: Store) -> Self:
        return replace(
            self,
            store=store,
            try_entry=_passed_by,
            check=None,
            series_in_progress=SeriesInProgress(),
        )


def _passed_by(
    env: UseCaseEnvironment,  # noqa: ARG001 - the protocol's
    entry: WaitlistEntry,  # noqa: ARG001
    seconds: float,  # noqa: ARG001
) -> bool:
    """A `TriesEntry` of dry runs: what an entry were granted, no request would find taken."""
    return True
