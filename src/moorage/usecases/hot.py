"""Place the servers of a Heat template: as a new ensemble, or as one that is decided already."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.decisions import DecisionState
from moorage.domain.errors import DescriptionMismatch, HoldExpired, InvalidDescription
from moorage.heat.compile import compile_template
from moorage.heat.emit import Decided, prepare
from moorage.usecases.access import own_ensemble
from moorage.usecases.create_ensemble import create_ensemble
from moorage.usecases.labels import domains_of, label
from moorage.usecases.standing import standing
from moorage.usecases.template_match import differences
from moorage.usecases.writing import current_decision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.heat.compile import Compiled, Source
    from moorage.heat.emit import Emission
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming

USABLE = frozenset({DecisionState.HELD, DecisionState.CONFIRMED, DecisionState.CLOSED})
"""States in which a decision's places are there to be written into a template."""

_TOLD: Final = 5
"""Members named in a refusal."""


@dataclass(frozen=True, slots=True)
class HotPlaced:
    """A template's members with their decision, and the template that carries it.

    After a dry run `template` is the one that came: there is no decision to carry. `files` are
    those that go with it, by name relative to it.
    """

    compiled: Compiled
    ensemble: Ensemble
    decision: Decision
    template: str
    files: Mapping[str, str]
    notes: tuple[str, ...]
    dry_run: bool = False


def place_template(
    parts: Parts,
    caller: Caller,
    source: Source,
    ask: Ask,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> HotPlaced:
    """Make an ensemble of a template, decide it and hold the places.

    Raises:
        InvalidDescription: the template, with path and line.
        Contradiction, Infeasible, LimitExceeded, Busy: as for any ensemble.
    """
    compiled = compile_template(source)
    emission = prepare(source, compiled)
    try:
        made = create_ensemble(parts, caller, compiled.description, ask, naming, dry_run=dry_run)
    except InvalidDescription as error:
        raise compiled.located(error) from error
    assert made.decision is not None, "it was asked for"
    if dry_run:
        return HotPlaced(
            compiled,
            made.ensemble,
            made.decision,
            source.template,
            source.files,
            compiled.notes,
            dry_run=True,
        )
    return _placed(parts, compiled, emission, made.ensemble, made.decision)


def match_template(parts: Parts, caller: Caller, source: Source, ensemble_id: str) -> HotPlaced:
    """Find a template's members in an ensemble by their names, and use its decision.

    Raises:
        InvalidDescription: the template, with path and line.
        NotFound: no such ensemble for this caller.
        DescriptionMismatch: the template describes another ensemble; the fields are listed.
        HoldExpired: the ensemble has no decision whose places are still there.
    """
    compiled = compile_template(source)
    emission = prepare(source, compiled)
    ensemble = own_ensemble(parts.store, caller, ensemble_id)
    try:
        diff = differences(parts.store, compiled.description, ensemble)
    except InvalidDescription as error:
        raise compiled.located(error) from error
    if diff:
        raise DescriptionMismatch("the template", diff)
    decision = _usable(parts, compiled, ensemble)
    return _placed(parts, compiled, emission, ensemble, decision)


def _usable(parts: Parts, compiled: Compiled, ensemble: Ensemble) -> Decision:
    """The present decision, if the places of all the template's members are still theirs.

    Raises:
        HoldExpired: there is none, it is over, or some of its places have been freed.
    """
    decision = current_decision(parts.store, ensemble)
    snapshot = parts.store.snapshot()
    state = None if decision is None else decision.state_at(snapshot.taken_at)
    if decision is None or state not in USABLE:
        why = "none was made" if state is None else f"its last decision is {state}"
        raise HoldExpired(f"ensemble {ensemble.id} has no places to use: {why}")
    stand = standing(snapshot, ensemble)
    freed = [one for one in compiled.keys if one not in decision.places or one not in stand.places]
    if freed:
        first = ", ".join(map(str, sorted(freed)[:_TOLD]))
        more = f" and {len(freed) - _TOLD} more" if len(freed) > _TOLD else ""
        raise HoldExpired(f"places of the decision were freed: {first}{more}; decide again")
    return decision


def _placed(
    parts: Parts, compiled: Compiled, emission: Emission, ensemble: Ensemble, decision: Decision
) -> HotPlaced:
    """The template with its decision. A host that has left the fleet since has no domains."""
    snapshot = parts.store.snapshot()
    places = {}
    for member in compiled.keys:
        row = snapshot.row_of.get(decision.places[member].host)
        domains = {} if row is None else domains_of(snapshot.topology, snapshot.names[row])
        places[member] = {
            str(level): label(ensemble.salt, level, name) for level, name in domains.items()
        }
    emitted = emission.carrying(Decided(ensemble.id, decision.id, MappingProxyType(places)))
    notes = (*compiled.notes, *emission.notes)
    return HotPlaced(compiled, ensemble, decision, emitted.template, emitted.files, notes)
