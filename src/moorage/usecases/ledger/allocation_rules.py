"""The rules for writes of allocations, in their order, and which writes each of them concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.virtual_classes import declared_terms
from moorage.usecases.claims import presented, stay_terms
from moorage.usecases.ledger import (
    build_retries,
    exclusive_hosts,
    member_moves,
    plan_targets,
    server_moves,
)
from moorage.usecases.shared.allocation_write import CommitRule, WriteRule, named_by_request
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.tickets import allocations as tickets

if TYPE_CHECKING:
    from moorage.domain.changes import Changeset
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.shared.allocation_write import AllocationWrite


def _of_several(asked: AllocationWrite) -> bool:
    return len(asked.writes) > 1


def _have_terms(asked: AllocationWrite) -> bool:
    """Whether a flavor or the settings may say when a server ends."""
    lifetimes = asked.settings.lifetimes
    return asked.virtual or lifetimes.default is not None or bool(lifetimes.projects)


def _have_tickets(asked: AllocationWrite) -> bool:
    if not asked.virtual:
        return False
    declared = (declared_terms(one.allocations.values()) for one in asked.writes)
    return any(one is not None and one.tickets for one in declared)


def _name_claim(asked: AllocationWrite) -> bool:
    """Whether a claim, in whatever state, has the request's id; nearly every request has one."""
    id_ = asked.request_id
    return id_ is not None and if_stored(asked.store.claim, named_by_request(id_)) is not None


def _may_retry_build(asked: AllocationWrite) -> bool:
    return bool(asked.settings.build_retries) and _name_claim(asked)


def _in_kept_fleet(asked: AllocationWrite, snapshot: Snapshot) -> bool:
    """Whether there are exclusive ensembles, or a plan holds a place for a server that is written.

    The commit relies on what this process knows.
    """
    known = asked.store.exclusive_ensembles(snapshot)
    if known.ensembles or not known.targets:
        return bool(known.ensembles)
    return any(one.consumer.uuid in known.targets for one in asked.writes)


def _judge_kept(asked: AllocationWrite, changeset: Changeset) -> Changeset:
    """The changeset, judged by what is kept from its servers, which take what is held for them."""
    known = asked.store.exclusive_ensembles(asked.store.snapshot())
    if known.ensembles:
        changeset = exclusive_hosts.judge(asked, changeset)
    if any(one.consumer.uuid in known.targets for one in asked.writes):
        changeset = plan_targets.take_held_target(asked, changeset)
    return changeset


def _of_members(asked: AllocationWrite, _: Snapshot) -> bool:
    """Whether a consumer is a member's server with allocations, or a migration."""
    return asked.of_member or any(one.consumer.migration_of is not None for one in asked.writes)


def _preemptible(asked: AllocationWrite, _: Snapshot) -> bool:
    return any(one.stay.preemptible for one in asked.writes)


WRITE_RULES: Final = (
    WriteRule(_of_several, server_moves.pair_migration),
    WriteRule(_have_terms, stay_terms.declare_stays),
    WriteRule(_have_tickets, tickets.take_by_ticket),
    WriteRule(_may_retry_build, build_retries.place_elsewhere),
    WriteRule(_name_claim, presented.take_by_claim),
)
COMMIT_RULES: Final = (
    CommitRule(_in_kept_fleet, _judge_kept),
    CommitRule(_of_members, member_moves.judge),
    CommitRule(_preemptible, stay_terms.end_in_time),
)
