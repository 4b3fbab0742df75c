"""Hosts that are exclusive to others, in what Nova asks of Placement and writes there.

Placement's API has no exclusive hosts. Hosts that are leased whole are left out of candidates, and
allocations there are refused; only an operator can offer such hosts. A host or domain that the
policy `exclusive` keeps for an ensemble is treated likewise where the policy refuses foreign
servers; where it reports them, they are written, and the ensemble's compliance has the violation.
Servers that are there already are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.ensembles import KEEPING, OnViolation, Phase
from moorage.domain.errors import WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.reservables import takes_whole_host
from moorage.domain.topology import HOST, Level
from moorage.engine.state.server_locations import NOWHERE
from moorage.engine.state.sharing import sharing
from moorage.policies.exclusive import Exclusive
from moorage.policies.registry import parse
from moorage.usecases.claims.stay_terms import query_period
from moorage.usecases.decide.closed_hosts import providers_closed_by
from moorage.usecases.decide.member_places import bookings_of, consumer_of
from moorage.usecases.ledger.server_moves import hosts_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.changes import Changeset, ReplaceAllocations
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import ExclusiveEnsembles, Store
    from moorage.usecases.shared.allocation_write import AllocationWrite
    from moorage.usecases.shared.candidate_search import CandidateSearch


def without_exclusive_hosts(search: CandidateSearch) -> CandidateSearch:
    """The search without hosts on which a server would be refused at any time of its stay.

    They lend nothing to a server elsewhere either. A query names no project, so it is everybody's
    stranger, unless it is for a server that there is.
    """
    store, settings = search.asked.store, search.asked.settings
    snapshot, query = search.snapshot, search.query
    known = store.exclusive_ensembles(snapshot)
    keeping = list(_refusing(known.ensembles, settings.foreign_servers))
    if not keeping:
        return search
    stay = query_period(snapshot, query, settings.lifetimes)
    stranger = _stranger(store, search.asked.named)
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for owner, statement in keeping:
        if not _is_own(owner, stranger.consumer):
            closed |= providers_closed_by(snapshot, owner, statement, stranger, stay)
    roots = snapshot.roots
    if not closed[roots].any():
        return search
    opened = frozenset(roots[~closed[roots]].tolist())
    lenders = sharing(snapshot).lender
    left = replace(
        query,
        anchors=opened if query.anchors is None else query.anchors & opened,
        closed_lenders=query.closed_lenders.union(lenders[closed[lenders]].tolist()),
    )
    return replace(search, query=left)


def judge(asked: AllocationWrite, changeset: Changeset) -> Changeset:
    """Refuse writes that give a consumer a host which is exclusive to others in its stay.

    A preemptible server, which ends in time for a lease, is judged over its notice only. A host
    that the consumer has already, or takes over from its server or migration, is not new.

    Returns:
        The changeset, which relies on the exclusive ensembles unless they only report foreign
        servers.

    Raises:
        WrongState: a write is refused.
    """
    default, store = asked.settings.foreign_servers, asked.store
    snapshot = store.snapshot()
    known = store.exclusive_ensembles(snapshot)
    for write in asked.writes if known.ensembles else ():
        had = hosts_before(snapshot, write)
        rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
        entered = sorted(set(snapshot.root[rows].tolist()) - had)
        if entered:
            notice = asked.settings.lifetimes.notice
            arrival = _Arrival(store, snapshot, write, tuple(entered), had, notice)
            arrival.judge(known, default)
    only_reports = known.ensembles and not any(_refusing(known.ensembles, default))
    return replace(
        changeset,
        exclusive_revision=None if only_reports else snapshot.exclusive_revision,
    )


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A write by which a consumer enters hosts."""

    store: Store
    snapshot: Snapshot
    write: ReplaceAllocations
    entered: tuple[int, ...]
    """Rows of the hosts."""
    had: frozenset[int]
    """Rows of hosts that the consumer has already."""
    notice: Duration

    def judge(self, known: ExclusiveEnsembles, default: OnViolation) -> None:
        """Refuse the arrival where it breaks a policy that refuses it.

        Raises:
            WrongState: a host is leased whole to others, or a policy refuses foreign servers.
        """
        snapshot = self.snapshot
        stay = Period(snapshot.taken_at, _end(snapshot, self.write, self.notice))
        newcomers: tuple[Occupant, ...] = ()
        for owner in self._owners(known, stay):
            newcomers = newcomers or tuple(self._newcomers(stay))
            strangers = [one for one in newcomers if not _is_own(owner, one.consumer)]
            for _, statement in _refusing((owner,), default) if strangers else ():
                closed = np.logical_or.reduce(
                    [
                        providers_closed_by(snapshot, owner, statement, one, stay)
                        for one in strangers
                    ]
                )
                if closed[list(self.had)].any():
                    continue  # the domain is shared already
                for row in self.entered:
                    if closed[row]:
                        raise self._refusal(owner, row)

    def _newcomers(self, stay: Period) -> Iterator[Occupant]:
        """The consumer itself, and who has slices of it."""
        uuid = self.write.consumer.uuid
        yield Occupant(uuid, self.write.consumer.project_id, _tags(self.store, uuid))
        for row, server in self.snapshot.offered_by.items():
            if server == uuid:
                yield from self.snapshot.occupants(row, stay)

    def _refusal(self, owner: Ensemble, row: int) -> WrongState:
        name = self.snapshot.state(row).provider.name
        kept = "leased" if _is_leased_whole(owner) else "exclusive"
        return WrongState(f"{name} is {kept} to others during this server's stay")

    def _owners(self, known: ExclusiveEnsembles, stay: Period) -> Iterable[Ensemble]:
        """The ensembles that may keep one of the hosts: with members there, or in its domains."""
        found = {
            owner.id: owner
            for owner in known.ensembles
            if any(_is_wide(one) and self._is_near(owner, one) for one in _keeping(owner))
        }
        for occupant in self._beside(stay):
            found |= {one.id: one for one in known.of_consumer.get(occupant.consumer, ())}
        return found.values()

    def _beside(self, stay: Period) -> Iterator[Occupant]:
        """Who is on the hosts, or on their servers; or on the host of a server that is entered."""
        hosts = self.snapshot.locations.hosts
        for root in {*self.entered, *hosts[list(self.entered)].tolist()} - {NOWHERE}:
            yield from self.snapshot.occupants(root, stay)

    def _is_near(self, owner: Ensemble, statement: PolicyStatement) -> bool:
        """Whether anybody of the ensemble has bookings, at any time, in a domain of the hosts."""
        snapshot, level = self.snapshot, _level(statement)
        if level is None:
            return False
        domain_of = snapshot.domains(level)
        entered = {int(domain_of[root]) for root in self.entered} - {-1}
        return any(
            int(domain_of[snapshot.root[row]]) in entered
            for member in (*owner.members, *owner.headroom)
            for row in snapshot.rows_of_consumer(consumer_of(member))
        )


def _keeping(owner: Ensemble) -> Iterator[PolicyStatement]:
    """The policies that keep hosts for those who are there already: of the steady phase."""
    return (
        one
        for one in owner.policies
        if one.required and one.type in KEEPING and Phase.STEADY in one.phases
    )


def _is_wide(statement: PolicyStatement) -> bool:
    """Whether the policy keeps domains of more than one host."""
    level = _level(statement)
    return level is not None and level.name != HOST


def _level(statement: PolicyStatement) -> Level | None:
    """The level that the policy keeps; None: it keeps nobody out."""
    policy = parse(statement)
    return Level(policy.tree, policy.level) if isinstance(policy, Exclusive) else None


def _refusing(
    ensembles: Iterable[Ensemble], default: OnViolation
) -> Iterator[tuple[Ensemble, PolicyStatement]]:
    """The policies that refuse foreign servers, and those of hosts that are leased whole."""
    for owner in ensembles:
        whole = _is_leased_whole(owner)
        for statement in _keeping(owner):
            if whole or statement.refuses(default):
                yield owner, statement


def _is_leased_whole(owner: Ensemble) -> bool:
    return any(takes_whole_host(role) for role in owner.roles)


def _is_own(owner: Ensemble, consumer: str) -> bool:
    """Whether a consumer is a member, its server, or the migration of one."""
    return any(
        consumer in {one.uuid, one.server_id, one.migration}
        for one in (*owner.members, *owner.headroom)
    )


def _stranger(store: Store, server: str | None) -> Occupant:
    """The server that a query is for, or nobody whom any ensemble knows."""
    known = None if server is None else store.consumer(server)
    if known is None:
        return Occupant(consumer="", project_id="")
    consumer, _ = known
    return Occupant(consumer.uuid, consumer.project_id, _tags(store, consumer.uuid))


def _tags(store: Store, server: str) -> frozenset[str]:
    """The tags of the roles that a server has in ensembles."""
    return frozenset(
        tag
        for ensemble in store.ensembles_of_server(server)
        for member in ensemble.members
        if member.server_id == server
        for tag in ensemble.role(member.name.role).tags
    )


def _end(snapshot: Snapshot, write: ReplaceAllocations, notice: Duration) -> Instant:
    """The end of the write's stay, or the earliest at which it can be evicted."""
    if write.until is not None:
        return write.until
    standing = bookings_of(snapshot, write.consumer.uuid)
    if standing:
        return max(one.period.end for one in standing)
    if write.stay.until is not None:
        return write.stay.until
    if write.stay.preemptible:
        return snapshot.taken_at + notice
    return FOREVER if write.stay.life is None else snapshot.taken_at + write.stay.life
