"""Extend an ensemble: decide more members beside those that it has.

Present members keep their places; only if the request allows it may those move that have no server
yet. Headroom of a role is taken first: its spares become the new members, at their places.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import (
    ConcurrentUpdate,
    Infeasible,
    InvalidDescription,
    QuotaExceeded,
    StaleGeneration,
)
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision
from moorage.usecases.decide.max_additional import may_leap
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import current_decision, options_for_joining, options_like
from moorage.usecases.ensembles.consent import check_consent
from moorage.usecases.ensembles.create import with_more_members
from moorage.usecases.ensembles.names import reclaimed_name_condition
from moorage.usecases.ensembles.policy_checks import check_policies
from moorage.usecases.ensembles.size_changes import RoleCounts, made_before, with_size_change
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.limits import check_size
from moorage.usecases.shared.role_access import check_unshared
from moorage.usecases.waitlist_turn import turn_of_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member, SizeChange
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import SelectsMembers
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Ids


_MOST_TRIED: Final = 64
"""Steps that are tried where not every step that is smaller than one that fits does."""


@dataclass(frozen=True, slots=True)
class Extension:
    """How an ensemble is to be extended."""

    counts: RoleCounts
    least: int | None = None
    """As many as fit: of each role equally many less, but of the one that gets the most at least so
    many. None: all of them, or none."""
    movable: bool = False
    """Whether present members without a server may move."""
    options: DecisionOptions | None = None
    refusal: RefusalDetail = RefusalDetail.FULL


@dataclass(frozen=True, slots=True)
class ExtendResult:
    """An extended ensemble with its decision, and the new members."""

    ensemble: Ensemble
    decision: Decision | None
    """None: it had its size already, and was never decided."""
    members: tuple[MemberName, ...]
    from_headroom: int = 0
    """How many of the new members have a place that was held for them before."""


def extend(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    extension: Extension,
    identity: RequestIdentity,
) -> ExtendResult:
    """Decide and hold more members of one or several roles, all together.

    The places are held as long as those of the present decision, if it is held. The same request
    with the same id adds nothing more, and gets the same members.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: no such role, or `least` is more than is asked for.
        Infeasible: they cannot be placed, or with `least` not even so many; nothing was changed.
        LimitExceeded, QuotaExceeded: the ensemble would become too large, or too much would be
            held.
        WrongState: the ensemble's places belong to a lease, or the role to another project.
        ConsentMissing: another project has not accepted a role of the ensemble.
        DuplicateName: the id was used by another request.
    """
    before = own_ensemble(env.store, caller, ensemble_id)
    counts = extension.counts
    if extension.least is not None and made_before(before, identity) is None:
        counts = _largest_step(env, caller, before, extension)
    asked = replace(extension, counts=counts)

    def attempt() -> DecisionFlow[ExtendResult]:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        if (made := made_before(ensemble, identity)) is not None:
            return _again(env, ensemble, made)
        try:
            return (yield from _flow(env, caller, ensemble, asked, identity))
        except StaleGeneration as moved:
            # The caller did not give this generation: read the ensemble again.
            raise ConcurrentUpdate(moved.message, subject=moved.subject) from moved
        except (Infeasible, QuotaExceeded):
            # The same request may have been granted on another connection: give the same answer.
            ensemble = own_ensemble(env.store, caller, ensemble_id)
            if (made := made_before(ensemble, identity)) is not None:
                return _again(env, ensemble, made)
            raise

    return run_decision(env, attempt)


def _again(env: UseCaseEnvironment, ensemble: Ensemble, made: SizeChange) -> ExtendResult:
    names = tuple(one.name for one in made.members)
    return ExtendResult(ensemble, current_decision(env.store, ensemble), names, made.from_headroom)


def _flow(
    env: UseCaseEnvironment,
    caller: Caller,
    stored: Ensemble,
    extension: Extension,
    identity: RequestIdentity,
) -> DecisionFlow[ExtendResult]:
    more = extension.counts.more(stored)
    for role in more:
        check_unshared(stored, role)
    check_consent(stored)
    decision = current_decision(env.store, stored)
    if not any(more.values()):
        return ExtendResult(stored, decision, ())
    grown, spares = extended(env.ids, stored, more)
    known = {one.name for one in stored.members}
    fresh = [one for one in grown.members if one.name not in known]
    grown = with_size_change(grown, identity, fresh, len(spares))
    check_size(env.limits, grown, stored)
    snapshot = env.store.snapshot()
    check_policies(snapshot.topology, grown, own=False)
    options = extension.options or DecisionOptions()
    if decision is not None and extension.options is None:
        options = options_like(decision)
    elif decision is not None:
        options = options_for_joining(options, decision, snapshot.taken_at)
    condition = reclaimed_name_condition(env.store, stored)
    names = frozenset(one.name for one in fresh)
    selections = extension_selections(names, _usable(snapshot, grown, spares))
    if extension.movable:
        selections = (*selections, _with_held(grown, names))
    proposal = Proposal(
        grown,
        stored.generation,
        selections,
        before=stored,
        waitlist_gate=turn_of_stay(env, grown, options.until),
        further_changes=lambda _: condition,
        reader=RefusalReader(
            operator=caller.operator,
            detail=extension.refusal,
            resized_from={role: stored.count(role) for role in more},
        ),
    )
    additional = tuple(dict.fromkeys((*more, *options.additional)))
    settled = yield DecisionRequest(
        proposal, replace(options, additional=additional), RequestIdentity(env.ids.uuid())
    )
    return ExtendResult(settled.ensemble, settled.decision, tuple(sorted(names)), len(spares))


def extended(
    ids: Ids, ensemble: Ensemble, more: Mapping[str, int]
) -> tuple[Ensemble, tuple[MemberName, ...]]:
    """The ensemble with more members, and which of them were its headroom.

    Spares get the lowest free indexes of their role, as all new members do.
    """
    grown = ensemble
    for role, count in more.items():
        grown = with_more_members(ids, grown, role, count)
    known = {one.name for one in ensemble.members}
    return from_headroom(grown, [one.name for one in grown.members if one.name not in known])


def from_headroom(
    ensemble: Ensemble, fresh: Iterable[MemberName]
) -> tuple[Ensemble, tuple[MemberName, ...]]:
    """The ensemble whose new members take spares of their roles, and which of them do so."""
    spares: dict[str, list[Member]] = {}
    for spare in ensemble.headroom:
        spares.setdefault(spare.name.role, []).append(spare)
    taken = {
        name: replace(spares[name.role].pop(0), name=name)
        for name in fresh
        if spares.get(name.role)
    }
    members = tuple(taken.get(one.name, one) for one in ensemble.members)
    used = {one.uuid for one in taken.values()}
    headroom = tuple(one for one in ensemble.headroom if one.uuid not in used)
    return replace(ensemble, members=members, headroom=headroom), tuple(taken)


def extension_selections(
    fresh: frozenset[MemberName], spares: frozenset[MemberName]
) -> tuple[SelectsMembers, ...]:
    """The members to place: the new ones but for `spares`, which have places; or else all."""
    if not spares:
        return (lambda _: fresh,)
    return (lambda _: fresh - spares), (lambda _: fresh)


def _usable(
    snapshot: Snapshot, grown: Ensemble, spares: Iterable[MemberName]
) -> frozenset[MemberName]:
    """The spares whose places are on hosts in service; the others are placed anew."""
    in_service = host_states(snapshot).in_service
    places = locate_members(snapshot, grown).places
    closed = {
        one for one in spares if one in places and not in_service[snapshot.row_of[places[one].host]]
    }
    return frozenset(spares) - closed


def _with_held(grown: Ensemble, names: frozenset[MemberName]) -> SelectsMembers:
    """Selects the new members, and all that have no server yet."""
    return lambda member_places: (
        names
        | {one.name for one in grown.members if member_places.of(one.name) is MemberStatus.HELD}
    )


def _largest_step(
    env: UseCaseEnvironment, caller: Caller, ensemble: Ensemble, extension: Extension
) -> RoleCounts:
    """As many new members as fit, up to what is asked for, but no fewer than `least`.

    They may not fit any more when they are decided, and a lower bound is not always exact; then
    the extension is refused with the reasons.

    Raises:
        InvalidDescription: `least` is more than is asked for.
    """
    more = extension.counts.more(ensemble)
    least = extension.least
    assert least is not None, "else nothing is counted"
    count = max(more.values(), default=0)
    if count and least > count:
        raise InvalidDescription(f"at least {least} of {count} more is too many", path="least")
    if least >= count:
        return extension.counts
    smallest = _lowered(more, count - least)
    first = _probe(env, caller, ensemble.id, extension, smallest)
    present = frozenset(one.name for one in ensemble.members)
    grown = frozenset(one.name for one in extended(env.ids, ensemble, more)[0].members)
    leaps = may_leap(ensemble.policies, ensemble.roles, present, grown - present)
    if first is None and not leaps:
        return RoleCounts(smallest)  # to be refused, with the reasons
    most = count
    if first is not None:
        most = min(count, least + _most_beyond(ensemble, smallest, first))

    def fits(step: int) -> bool:
        lowered = _lowered(more, count - step)
        return _probe(env, caller, ensemble.id, extension, lowered) is not None

    step = _largest(fits, least, most, leaps=leaps)
    return RoleCounts(_lowered(more, count - step))


def _largest(fits: Callable[[int], bool], least: int, most: int, *, leaps: bool) -> int:
    """The largest step that fits; `least` if none that is larger does.

    Unless it `leaps`, every step that is smaller than one that fits does, too.
    """
    if leaps:
        steps = range(most, max(least, most - _MOST_TRIED), -1)
        return next((step for step in steps if fits(step)), least)
    low, high = least, most + 1
    step = most
    while high - low > 1:
        low, high = (step, high) if fits(step) else (low, step)
        step = (low + high) // 2
    return low


def _lowered(more: Mapping[str, int], less: int) -> Mapping[str, int]:
    """So many less of each role; without those of which none is left."""
    return {role: count - less for role, count in more.items() if count > less}


def _most_beyond(ensemble: Ensemble, taken: Mapping[str, int], found: Decision) -> int:
    """An upper bound of how many more of each of these roles fit after they were `taken`.

    That is what fits of any role alone, with what is left of its headroom.
    """
    spares = Counter(one.name.role for one in ensemble.headroom)
    return min(
        found.max_additional[role] + max(spares[role] - count, 0) for role, count in taken.items()
    )


def _probe(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    extension: Extension,
    counts: Mapping[str, int],
) -> Decision | None:
    """The decision about so many more members as it would be made; None if there is none."""
    env = env.in_dry_run()
    asked = replace(extension, counts=RoleCounts(counts), refusal=RefusalDetail.NONE)
    nobody = RequestIdentity(env.ids.uuid())

    def attempt() -> DecisionFlow[ExtendResult]:
        ensemble = own_ensemble(env.store, caller, ensemble_id)
        return (yield from _flow(env, caller, ensemble, asked, nobody))

    try:
        return run_decision(env, attempt).decision
    except Infeasible:
        return None
