"""Makes plans: which servers move where, in which order. Nothing is written here.

The search (`engine.moves`) knows capacity, devices and policies as columns and rules. What it finds
is checked again on the ledger's own arithmetic and by the judgement of policies before it becomes a
plan; moves that do not pass are barred, and searched for again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.host_states import HostState
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import Move, MoveKind, Plan, PlanKind, Unmoved
from moorage.engine.moves.problem import StuckCode
from moorage.engine.state.host_states import host_states
from moorage.usecases.capacity.planned import resolve_hosts
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.extend import extended
from moorage.usecases.plans.move_problem import MOVE_COST
from moorage.usecases.plans.move_units import Newcomer, PlacedServer
from moorage.usecases.plans.plan_search import MoveSearch
from moorage.usecases.plans.room_moves import LEAST_GAIN
from moorage.usecases.plans.unit_hosts import ZONE
from moorage.usecases.shared.access import ITSELF, own_ensemble, require_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.moves.problem import MovePlan, Stuck
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.plans.move_problem import StatedMoves
    from moorage.usecases.plans.plan_search import FoundMoves
    from moorage.usecases.ports import Caller

_CODES: Final = MappingProxyType(
    {
        "no-room": "no host has room for it",
        "policy": "policies permit it on no host that has room",
        "pinned": "it cannot be moved",
        "no-order": "there is no order of moves, with a temporary host either, that gets it there",
        "undecided": "no host was found for it in time",
    }
)


_ROLE: Final = "role"
_COUNT: Final = "count"
"""Attributes of a plan that makes room for more members of a role."""


def make_plan(
    env: UseCaseEnvironment, caller: Caller, request: PlanRequest, identity: RequestIdentity
) -> Plan:
    """Make a plan; it is not stored.

    Raises:
        Forbidden: the caller is no operator.
        NotFound, UnknownName: no such host, domain or ensemble.
        InvalidDescription: hosts that run are to be evacuated, or those that do not to be drained.
        Busy: time ran out before anything was found.
        MoorageError: as `create_ensemble`, of an ensemble for which room is to be made.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    maker = _Planner(env, caller, request, identity, snapshot)
    match request.kind:
        case PlanKind.DRAIN | PlanKind.EVACUATE:
            return maker.emptied()
        case PlanKind.REPAIR:
            return maker.repaired()
        case PlanKind.ADMIT:
            return maker.admitted()
        case PlanKind.REBALANCE:
            return maker.rebalanced()


def make_again(env: UseCaseEnvironment, plan: Plan) -> Plan | None:
    """Make a plan for the same as another one, from the ledger as it is now; it is not stored.

    Of hosts that are to be evacuated those count that do not run now. None: it cannot be made
    again, as the ensemble or the hosts are gone, or it rebalanced, for which there is no end.

    Raises:
        Busy: time ran out before anything was found.
    """
    snapshot = env.store.snapshot()
    states = host_states(snapshot)
    hosts = [one for one in plan.hosts if one in snapshot.row_of]
    if plan.kind is PlanKind.EVACUATE:
        hosts = [one for one in hosts if states.state(snapshot.row_of[one]) is HostState.DOWN]
    described = plan.kind is PlanKind.ADMIT and plan.ensemble_id is None
    if plan.kind is PlanKind.REBALANCE or described or (plan.hosts and not hosts):
        return None
    request = PlanRequest(
        plan.kind,
        hosts=tuple(hosts),
        ensemble=plan.ensemble_id,
        role=plan.attributes.get(_ROLE),
        count=int(plan.attributes.get(_COUNT, 0)),
        by=plan.by,
        limits=plan.limits,
        cold=any(one.kind is MoveKind.COLD for one in plan.moves),
    )
    try:
        return make_plan(env, ITSELF, request, RequestIdentity(plan.id))
    except (InvalidDescription, NotFound):
        return None


@dataclass(frozen=True, eq=False)
class _Planner:
    """Makes one plan."""

    env: UseCaseEnvironment
    caller: Caller
    request: PlanRequest
    identity: RequestIdentity
    snapshot: Snapshot

    def emptied(self) -> Plan:
        """Hosts become empty."""
        snapshot, request = self.snapshot, self.request
        uuids = resolve_hosts(snapshot, request.hosts, request.domains, path="plan")
        rows = [snapshot.row_of[uuid] for uuid in uuids]
        self._check_states(rows)
        found = MoveSearch(self.env, snapshot).emptied(rows)
        names = sorted(snapshot.names[row] for row in rows)
        subject = ", ".join((*request.domains, *request.hosts)) or ", ".join(names)
        return replace(self._plan(found, subject), hosts=tuple(sorted(uuids)))

    def _check_states(self, rows: Iterable[int]) -> None:
        states = host_states(self.snapshot)
        down = [row for row in rows if states.state(row) is HostState.DOWN]
        runs = [row for row in rows if states.state(row) is not HostState.DOWN]
        if self.request.kind is PlanKind.DRAIN and down:
            names = ", ".join(self.snapshot.names[row] for row in down[:5])
            raise InvalidDescription(
                f"{names}: out of service; plan to evacuate instead", path="hosts"
            )
        if self.request.kind is PlanKind.EVACUATE and runs:
            names = ", ".join(self.snapshot.names[row] for row in runs[:5])
            raise InvalidDescription(
                f"{names}: in service, or still running; plan to drain instead", path="hosts"
            )

    def repaired(self) -> Plan:
        """An ensemble's policies hold again, and its members are on hosts in service."""
        assert self.request.ensemble is not None
        ensemble = own_ensemble(self.env.store, self.caller, self.request.ensemble)
        found = MoveSearch(self.env, self.snapshot).repaired(ensemble)
        return replace(self._plan(found, ensemble.name), ensemble_id=ensemble.id)

    def admitted(self) -> Plan:
        """An ensemble, or more members of one, has room."""
        ensemble, names = self._newcomers()
        found = MoveSearch(self.env, self.snapshot).admitted(ensemble, names)
        plan = self._plan(found, ensemble.name)
        if self.request.ensemble is None:
            return plan
        more = {_ROLE: self.request.role, _COUNT: str(self.request.count)}
        given = {name: value for name, value in more.items() if value and value != "0"}
        return replace(plan, ensemble_id=ensemble.id, attributes=MappingProxyType(given))

    def rebalanced(self) -> Plan:
        """The fleet has more room for what is usually requested."""
        least = self.request.gain or LEAST_GAIN
        found, gained = MoveSearch(self.env, self.snapshot).rebalanced(least)
        plan = self._plan(found, "the fleet")
        figures = {"gain": f"{gained:.2f}", "least_gain": f"{least:.2f}"}
        return replace(plan, lower_bound=0, optimal=False, attributes=MappingProxyType(figures))

    def _newcomers(self) -> tuple[Ensemble, frozenset[MemberName]]:
        """The ensemble as it is to be, and its members without a place."""
        request, dry = self.request, self.env.in_dry_run()
        if request.description is not None:
            created = create_ensemble(dry, self.caller, request.description, None, self.identity)
            return created.ensemble, frozenset(one.name for one in created.ensemble.members)
        assert request.ensemble is not None
        ensemble = own_ensemble(self.env.store, self.caller, request.ensemble)
        if request.role is not None:
            ensemble.role(request.role)
            ensemble, _ = extended(self.env.ids, ensemble, {request.role: request.count})
        booked = self.snapshot.live_bookings(one.server_id or one.uuid for one in ensemble.members)
        names = frozenset(
            one.name for one in ensemble.members if (one.server_id or one.uuid) not in booked
        )
        if not names:
            raise InvalidDescription(
                f"every member of {ensemble.name} has a place", path="ensemble"
            )
        return ensemble, names

    def _plan(self, found: FoundMoves, subject: str) -> Plan:
        """The plan of what a search has found."""
        stated = found.stated
        moves = tuple(self._moves(stated, found.plan))
        return Plan(
            id=self.identity.id,
            kind=self.request.kind,
            subject=subject,
            created_at=self.snapshot.taken_at,
            moves=moves,
            lower_bound=found.plan.lower_bound // MOVE_COST,
            optimal=found.plan.optimal and not found.stuck,
            unmoved=tuple(self._unmoved(stated, one) for one in found.stuck),
            by=self.request.by,
            limits=self.request.limits,
            changed_at=self.snapshot.taken_at,
            actor=self.caller.actor,
            revision=self.snapshot.revision,
        )

    def _moves(self, stated: StatedMoves, plan: MovePlan) -> Iterator[Move]:
        snapshot, states = self.snapshot, host_states(self.snapshot)
        for step, taken in zip(plan.steps, stated.allocations_of(plan), strict=True):
            server = stated.units[step.unit]
            assert isinstance(server, PlacedServer)
            assert taken is not None  # checked by `wrong_moves`
            source, target = (int(stated.rows[one]) for one in (step.source, step.target))
            kind = MoveKind.COLD if self.request.cold else MoveKind.LIVE
            if states.state(source) is HostState.DOWN:
                kind = MoveKind.EVACUATE
            yield Move(
                id=self.env.ids.uuid(),
                server=server.consumer,
                project_id=server.project_id,
                source=snapshot.uuids[source],
                source_name=snapshot.names[source],
                target=snapshot.uuids[target],
                target_name=snapshot.names[target],
                allocations=taken,
                kind=kind,
                ensemble_id=None if server.ensemble is None else server.ensemble.id,
                ensemble="" if server.ensemble is None else server.ensemble.name,
                member=None if server.member is None else server.member.name,
                memory_mb=server.memory_mb,
                after=step.after,
            )

    def _unmoved(self, stated: StatedMoves, stuck: Stuck) -> Unmoved:
        unit = stated.units[stuck.unit]
        why = _CODES[stuck.code]
        if unit.ensemble is None and ZONE in stated.terrain.levels:
            why = f"{why}; a server of no ensemble stays in its zone"
        rules = stuck.rules
        if stuck.code == StuckCode.NO_ORDER and not rules:
            every = (stated.problem.rules[one] for one in stated.problem.rules_of[stuck.unit])
            rules = tuple(one.name for one in every if one.meanwhile is not None)
        if rules:
            why = f"{why}: {', '.join(rules)}"
        if isinstance(unit, Newcomer):
            name = f"{unit.ensemble.name} {unit.member}"
            return Unmoved("", unit.ensemble.project_id, "", "", f"{name}: {why}", stuck.code)
        return Unmoved(
            server=unit.consumer,
            project_id=unit.project_id,
            host=self.snapshot.uuids[unit.host],
            host_name=self.snapshot.names[unit.host],
            reason=unit.pinned or why,
            code=stuck.code,
            ensemble_id=None if unit.ensemble is None else unit.ensemble.id,
            member=None if unit.member is None else unit.member.name,
        )
