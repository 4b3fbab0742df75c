"""A lease that gave up its places waits for others, where it stood before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import PutEntry
from moorage.domain.waitlist import WaitlistEntry, needed

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant


def in_line_again(
    lease: Lease, ensemble: Ensemble, entry_id: str, *, now: Instant, why: str
) -> PutEntry:
    """The change by which a lease that lost its places waits for its own window.

    To be written with what ends the lease: the entry is of its ensemble, which must have neither
    places nor another lease when it is tried. Its place in the order is that of the lease, which
    keeps its priority; no bound of its project keeps it out.

    Args:
        lease: as it was.
        ensemble: of which it was.
        entry_id: the entry's, and the next lease's; the lease's own is taken.
        now: when it is written.
        why: what it is told about what happened.
    """
    start = lease.terms.period.start
    return PutEntry(
        WaitlistEntry(
            id=entry_id,
            project_id=lease.project_id,
            user_id=lease.user_id,
            name=lease.name,
            terms=lease.terms,
            latest=start,
            until=start + 1,
            entered_at=lease.created_at,
            ensemble_id=ensemble.id,
            units=len(ensemble.members),
            classes=needed(ensemble),
            roles=frozenset({"member"}),
            any_priority=True,
            asked_from=lease.project_id,
            actions=lease.actions,
            annotations=lease.annotations,
            why=why,
            created_at=now,
            updated_at=now,
        ),
        None,
    )
