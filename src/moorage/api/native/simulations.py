"""`/v1/simulations` and `/v1/survivability`: what would be, and what the fleet survives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs

from moorage.api.native import reading
from moorage.api.native.call import Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.explanations import explanation_view
from moorage.api.native.formats import view
from moorage.domain.errors import InvalidDescription
from moorage.domain.simulations import (
    Addition,
    Admission,
    Closure,
    Loss,
    PolicyChange,
    SimulationRequest,
)
from moorage.usecases.refusals.explanation import refused_because
from moorage.usecases.simulations.replacement import Verdict
from moorage.usecases.simulations.simulation import NAMED, simulate
from moorage.usecases.simulations.survivability import SurvivabilityQuery, fleet_survivability
from moorage.wire import explanations as explanations_wire
from moorage.wire import simulations as wire

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.domain.explain import Explanation
    from moorage.domain.simulations import SupposedChange
    from moorage.usecases.simulations.simulation import Admitted, EnsembleLoss

_NAMED_LOST: Final = 20
"""Ensembles that are named of each loss."""


def create(call: Call) -> Reply:
    """POST: simulate; nothing is written."""
    body: wire.SimulationBody = call.body.simulation
    request = SimulationRequest(
        changes=tuple(
            _change(one, f"simulation.changes[{number}]") for number, one in enumerate(body.changes)
        ),
        at=None if body.at is None else reading.instant(body.at, "simulation.at"),
        flavors=tuple(dict.fromkeys(body.flavors)),
        time_limit=reading.duration(body.time_limit, "simulation.time_limit"),
    )
    found = call.perform(simulate, request)
    counts = wire.LossCounts(
        ensembles=len(found.losses),
        without_quorum=found.without_quorum,
        placed=found.count(Verdict.PLACED),
        refused=found.count(Verdict.REFUSED),
        undecided=found.count(Verdict.UNDECIDED),
    )
    shown = view(
        wire.Simulation,
        found,
        down=list(found.down[:NAMED]),
        closed=list(found.closed[:NAMED]),
        added=list(found.added[:NAMED]),
        breaks=impact_view(found.breaks),
        losses=[_loss(call, one) for one in found.losses[:NAMED]],
        counts=counts,
        admitted=[_admitted(call, one) for one in found.admitted],
        capacity=[view(wire.FlavorCapacity, one) for one in found.capacity],
    )
    return Reply(wire.OneSimulation(shown))


def _change(body: wire.SupposedChange, path: str) -> SupposedChange:
    """The change that a part of the body says.

    Raises:
        InvalidDescription: it says none or several, or how long an ensemble's places are held.
    """
    given = [name for name in body.__struct_fields__ if getattr(body, name) is not UNSET]
    if len(given) != 1:
        raise InvalidDescription("give one of lose, close, add, admit and policy", path=path)
    if body.lose is not UNSET:
        return Loss(body.lose)
    if body.close is not UNSET:
        return Closure(body.close)
    if body.add is not UNSET:
        return Addition(body.add.count, body.add.like, tuple(dict.fromkeys(body.add.domains)))
    if body.admit is not UNSET:
        if body.admit.decide is not None:
            raise InvalidDescription(
                "an ensemble is placed in any case: leave decide out", path=f"{path}.admit.decide"
            )
        return Admission(reading.description(body.admit))
    assert body.policy is not UNSET, "else nothing is given"
    return PolicyChange(body.policy.ensemble_id, body.policy.name, body.policy.fields)


def _loss(call: Call, one: EnsembleLoss) -> wire.EnsembleLoss:
    again = one.again
    return wire.EnsembleLoss(
        ensemble_id=one.ensemble.id,
        ensemble=one.ensemble.name,
        project_id=one.ensemble.project_id,
        lost=[str(name) for name in one.lost],
        quorum=one.quorum,
        roles=[view(wire.RoleLeft, role) for role in one.roles],
        again=wire.Again(
            verdict=again.verdict.value,
            hosts={str(name): host for name, host in again.hosts.items()},
            why=_why(again.explanation, again.why),
            explanation=_explanation(call, again.explanation),
        ),
    )


def _admitted(call: Call, one: Admitted) -> wire.Admitted:
    return wire.Admitted(
        ensemble=one.name,
        verdict=one.verdict.value,
        hosts={str(name): host for name, host in one.hosts.items()},
        why=_why(one.explanation, one.why),
        explanation=_explanation(call, one.explanation),
    )


def _why(explanation: Explanation | None, otherwise: str) -> str:
    return otherwise if explanation is None else refused_because(explanation, exact=True)


def _explanation(call: Call, found: Explanation | None) -> explanations_wire.Explanation | None:
    """The explanation; it is not stored, and has no link."""
    return None if found is None else structs.replace(explanation_view(call, found), links=[])


def survives(call: Call) -> Reply:
    """GET: what the fleet survives."""
    query = call.query
    level, tree, lose = query.get("level", ""), query.get("tree"), query.get("lose", "1")
    if not (lose.isascii() and lose.isdigit()):
        raise InvalidDescription(f"lose is a number of domains, not {lose!r}", path="lose")
    if tree is not None and not level:
        raise InvalidDescription("give the level of the tree, too", path="level")
    names = query.get("domains", "")
    asked = SurvivabilityQuery(
        level=level if tree is None else f"{tree}:{level}",
        lose=int(lose[:9]),
        domains=tuple(dict.fromkeys(names.split(","))) if names else (),
        time_limit=reading.duration(query.get("time_limit"), "time_limit"),
    )
    found = call.perform(fleet_survivability, asked)
    losses = [
        wire.DomainLoss(
            domains=list(one.domains),
            hosts=one.hosts,
            members=one.members,
            ensembles=one.ensembles,
            without_quorum=len(one.without_quorum),
            placed=one.count(Verdict.PLACED),
            refused=one.count(Verdict.REFUSED),
            undecided=one.count(Verdict.UNDECIDED),
            lost=[
                view(
                    wire.EnsembleWithoutQuorum,
                    each,
                    too_few=[view(wire.SetLeft, some) for some in each.too_few],
                )
                for each in one.without_quorum[:_NAMED_LOST]
            ],
        )
        for one in found.losses[:NAMED]
    ]
    shown = view(wire.FleetSurvivability, found, level=str(found.level), losses=losses)
    return Reply(wire.OneSurvivability(shown))
