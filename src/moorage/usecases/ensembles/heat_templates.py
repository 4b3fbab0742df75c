"""Place the servers of a Heat template, or match the template with a decided ensemble.

Roles and policies are compared by meaning: a flavor by its resources, a policy by its parameters
with their defaults. The ensemble may have policies that the template lacks, but not the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.decisions import DecisionState
from moorage.domain.errors import (
    DescriptionMismatch,
    HoldExpired,
    InvalidDescription,
    MoorageError,
)
from moorage.domain.period import SECOND
from moorage.domain.refusal_commands import to_place
from moorage.domain.words import first_of
from moorage.engine.devices.slot_requirements import describe_group
from moorage.heat.compile import compile_template
from moorage.heat.placed_template import prepare
from moorage.heat.template_writer import Binding, TemplateDecision
from moorage.usecases.claims.comparison import amount_differences, difference
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.ensembles.headroom import set_headroom
from moorage.usecases.ensembles.policies import policy_meaning
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.host_labels import domains_of, label
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.role_access import check_no_shares
from moorage.usecases.shared.role_resolution import names_for, resolve
from moorage.usecases.shared.ticket_flavors import ticket_flavors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.decisions import Decision
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble, PolicyStatement, Role
    from moorage.domain.nova.server_request import NovaRules
    from moorage.heat.compile import CompiledTemplate, Source
    from moorage.heat.placed_template import PreparedTemplates
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.role_resolution import LedgerNames


def differences(
    names: LedgerNames, description: EnsembleDescription, ensemble: Ensemble, rules: NovaRules
) -> tuple[Mapping[str, object], ...]:
    """Every field in which the description differs from the ensemble.

    `described` is the ensemble's value, `requested` the description's, as in a claim's answer.

    Raises:
        UnknownName: the description names a flavor, class or trait that is not known here.
        UnknownPolicy, InvalidDescription: a policy of the description cannot be understood.
    """
    roles = {role.name: role for role in resolve(names, description.roles, rules)}
    counts = {role.name: role.count for role in description.roles}
    found = [
        difference(role.name, "missing", "a role", None)
        for role in ensemble.roles
        if role.name not in roles
    ]
    there = {role.name: role for role in ensemble.roles}
    present = ensemble.counts
    for name, role in roles.items():
        known = there.get(name)
        if known is None:
            found.append(difference(name, "unknown", None, "a role"))
            continue
        if counts[name] != present.get(name, 0):
            found.append(difference(f"{name}.count", "differs", present.get(name, 0), counts[name]))
        found += _roles_differ(known, role)
    return (*found, *_policies_differ(description.policies, ensemble))


def _roles_differ(known: Role, role: Role) -> Iterator[Mapping[str, object]]:
    yield from amount_differences(role.name, known.resources, role.resources)
    fields: tuple[tuple[str, object, object], ...] = (
        ("required", _groups(known.required), _groups(role.required)),
        ("forbidden", sorted(known.forbidden), sorted(role.forbidden)),
        ("member_of", _groups(known.member_of), _groups(role.member_of)),
        ("tags", sorted(known.tags), sorted(role.tags)),
        ("min_available", known.min_available, role.min_available),
        ("root_required", sorted(known.root_required), sorted(role.root_required)),
        ("groups", _devices(known), _devices(role)),
    )
    for field, before, after in fields:
        if before != after:
            yield difference(f"{role.name}.{field}", "differs", before, after)


def _devices(role: Role) -> list[list[str]]:
    """The role's ports, volumes and groups with their requirements, in comparable form."""
    described = [
        [one.kind, one.name, describe_group(one.resources, one.required), f"beside: {one.beside}"]
        + sorted(one.forbidden)
        + ["|".join(sorted(any_of)) for any_of in one.member_of]
        for one in sorted(role.groups, key=lambda one: (one.kind, one.name))
    ]
    together = [["same_subtree", *sorted(names)] for names in role.same_subtree]
    return [*described, *sorted(together), *([["isolate"]] if role.isolate else [])]


def _groups(groups: tuple[frozenset[str], ...]) -> list[list[str]]:
    return sorted(sorted(group) for group in set(groups))


def _policies_differ(
    statements: tuple[PolicyStatement, ...], ensemble: Ensemble
) -> Iterator[Mapping[str, object]]:
    known = {one.name: one for one in ensemble.policies}
    for index, statement in enumerate(statements):
        path = f"policies.{statement.name}"
        meaning = policy_meaning(statement, f"policies[{index}]")
        there = known.get(statement.name)
        if there is None:
            yield difference(path, "unknown", None, statement.type)
        elif policy_meaning(there, path) != meaning:
            yield difference(path, "differs", there.type, statement.type)


USABLE = frozenset({DecisionState.HELD, DecisionState.CONFIRMED, DecisionState.CLOSED})
"""States in which a decision's places can be written into a template."""

_ANNOTATING: Final = 0.0002
"""Seconds per member for writing a decision into a template."""
_TOLD: Final = 5
"""Most members named in an error."""
MOST_COUNTED: Final = 16
"""Most scaling roles of which further members are counted unasked."""


@dataclass(frozen=True, slots=True)
class TemplateRequest:
    """A template, and whether and how its decision is written into it."""

    source: Source
    binding: Binding | None = Binding.HINTS
    """How the written template takes the places; None: it is not written."""


@dataclass(frozen=True, slots=True)
class PlacedTemplate:
    """A compiled template, its ensemble and decision, and the template annotated with them.

    If nothing was written, `template` is the given one, without annotations. `files` are its nested
    files: name relative to the template -> content.
    """

    compiled: CompiledTemplate
    ensemble: Ensemble
    decision: Decision
    template: str
    files: Mapping[str, str]
    notes: tuple[str, ...]


def place_template(
    env: UseCaseEnvironment,
    caller: Caller,
    request: TemplateRequest,
    options: DecisionOptions,
    identity: RequestIdentity,
) -> PlacedTemplate:
    """Create an ensemble from a Heat template, decide it and hold the places.

    The time limit of the decision includes reading the template. How many more members fit is
    counted for the roles of scaling groups, too.

    Headroom of scaling groups is kept once the members are placed; a dry run does not try it.

    Raises:
        InvalidDescription: the template is not valid; the error has path and line.
        Contradiction, Infeasible, LimitExceeded, Busy: as for any ensemble; nothing is held.
    """
    time_limit = time_limit_within(env.limits, options.time_limit)
    with deadline.within(env.stopwatch, time_limit / SECOND):
        compiled, emission = _read(request)
        try:
            with deadline.leaving(len(compiled.keys) * _ANNOTATING):
                made = create_ensemble(
                    env,
                    caller,
                    compiled.description,
                    counting_growth(options, compiled),
                    identity,
                )
        except InvalidDescription as error:
            raise compiled.with_location(error) from error
    assert made.decision is not None, "it was asked for"
    if not made.written:
        return _unwritten(request.source, compiled, made.ensemble, made.decision)
    ensemble = _with_headroom(env, caller, compiled, made.ensemble)
    with deadline.over():
        return _placed(env, request, compiled, emission, ensemble, made.decision)


def match_template(
    env: UseCaseEnvironment,
    caller: Caller,
    request: TemplateRequest,
    ensemble_id: str,
) -> PlacedTemplate:
    """Match a template's servers with an ensemble's members by name, and use its decision.

    Raises:
        InvalidDescription: the template is not valid; the error has path and line.
        NotFound: no such ensemble for this caller.
        DescriptionMismatch: the template differs from the ensemble; the fields are listed.
        HoldExpired: the ensemble has no decision with all the template's places.
    """
    compiled, emission = _read(request)
    ensemble = own_ensemble(env.store, caller, ensemble_id)
    check_no_shares(ensemble, "a stack's servers are one project's")
    try:
        diff = differences(
            names_for(env.store, caller), compiled.description, ensemble, env.limits.nova
        )
    except InvalidDescription as error:
        raise compiled.with_location(error) from error
    if diff:
        raise DescriptionMismatch("the template", diff)
    decision = _usable(env, compiled, ensemble)
    return _placed(env, request, compiled, emission, ensemble, decision)


def _with_headroom(
    env: UseCaseEnvironment, caller: Caller, compiled: CompiledTemplate, ensemble: Ensemble
) -> Ensemble:
    """The ensemble with the headroom that its template asks for; without it, it is deleted.

    Raises:
        Infeasible, LimitExceeded, QuotaExceeded, Busy: there are no places to keep.
    """
    for role, count in compiled.headroom.items():
        try:
            ensemble = set_headroom(env, caller, ensemble.id, role, count).ensemble
        except MoorageError:
            delete_ensemble(env, caller, ensemble.id, None)
            raise
    return ensemble


def counting_growth(options: DecisionOptions, compiled: CompiledTemplate) -> DecisionOptions:
    """The options, which also count how many more members of scaling roles fit."""
    described = {role.name for role in compiled.description.roles if role.count}
    scaling = [role for role in compiled.scaling if role in described][:MOST_COUNTED]
    counted = tuple(dict.fromkeys((*options.additional, *scaling)))
    return replace(options, additional=counted)


def _read(
    request: TemplateRequest,
) -> tuple[CompiledTemplate, PreparedTemplates | None]:
    """Compile a template, and prepare its text to be written with a decision.

    Raises:
        InvalidDescription: the template cannot be compiled or written; with path and line.
        TimeExpired: the deadline of the request passed.
    """
    compiled = compile_template(request.source)
    deadline.check()
    if request.binding is None:
        return compiled, None
    return compiled, prepare(request.source, compiled, request.binding)


def _usable(env: UseCaseEnvironment, compiled: CompiledTemplate, ensemble: Ensemble) -> Decision:
    """The present decision, if all the template's members still have their places.

    Raises:
        HoldExpired: there is no decision, it is over, or some of its places have been freed.
    """
    decision = current_decision(env.store, ensemble)
    snapshot = env.store.snapshot()
    state = None if decision is None else decision.state_at(snapshot.taken_at)
    if decision is None or state not in USABLE:
        why = "none was made" if state is None else f"its last decision is {state}"
        remedy = to_place(ensemble.name, what="its members")
        raise HoldExpired(f"ensemble {ensemble.name} has no places to use: {why}{remedy}")
    member_places = locate_members(snapshot, ensemble)
    freed = [
        one
        for one in compiled.keys
        if one not in decision.places or one not in member_places.places
    ]
    if freed:
        some = ", ".join(first_of(sorted(freed), _TOLD))
        remedy = to_place(ensemble.name, what="them")
        raise HoldExpired(f"places of the decision were freed: {some}{remedy}")
    return decision


def _placed(
    env: UseCaseEnvironment,
    request: TemplateRequest,
    compiled: CompiledTemplate,
    emission: PreparedTemplates | None,
    ensemble: Ensemble,
    decision: Decision,
) -> PlacedTemplate:
    """The template written with its decision. A host that was deleted since has no domains.

    Raises:
        HoldExpired: it is to be bound by flavors, and the decision has none any more.
    """
    binding = request.binding
    if emission is None or binding is None:
        return _unwritten(request.source, compiled, ensemble, decision)
    snapshot = env.store.snapshot()
    places = {}
    for member in compiled.keys:
        row = snapshot.row_of.get(decision.places[member].host)
        domains = {} if row is None else domains_of(snapshot, row)
        places[member] = {
            str(level): label(ensemble.salt, level, name) for level, name in domains.items()
        }
    flavors = {one.role: one.name for one in ticket_flavors(env.store, decision, ensemble)}
    if binding is Binding.FLAVORS and not flavors:
        raise HoldExpired(f"the decision of ensemble {ensemble.id} is not held: it has no flavors")
    emitted = emission.with_decision(
        TemplateDecision(
            ensemble.id, decision.id, MappingProxyType(places), binding, MappingProxyType(flavors)
        )
    )
    notes = (*compiled.notes, *emission.notes, *emitted.notes)
    return PlacedTemplate(compiled, ensemble, decision, emitted.template, emitted.files, notes)


def _unwritten(
    source: Source, compiled: CompiledTemplate, ensemble: Ensemble, decision: Decision
) -> PlacedTemplate:
    """The template as it came."""
    return PlacedTemplate(
        compiled, ensemble, decision, source.template, source.files, compiled.notes
    )
