"""Place a member elsewhere after its server was deleted, as Nova does with one it could not build.

The place of such a server returns to its held decision, on the same host (see `place_returns`). By
the setting `failed_builds`, an effect then places the member anew on another host; no other member
moves. Without room elsewhere the place stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.decisions import DecisionState
from moorage.domain.effects import EffectKind
from moorage.domain.errors import Infeasible
from moorage.domain.refusal_commands import to_see_places
from moorage.usecases.decide.loop import decide_proposal
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    KnownHosts,
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.writes import current_decision, options_like
from moorage.usecases.effects import notifications
from moorage.usecases.effects.outcome import effect_finished, finish
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from moorage.domain.changes import PutEffect
    from moorage.domain.decisions import Decision
    from moorage.domain.effects import Effect
    from moorage.domain.ensembles import Member
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store


def placing_anew(decision: Decision, member: Member, place: Place, now: Instant) -> PutEffect:
    """The effect of a member's place that returns to a held decision."""
    name = str(member.name)
    return notifications.idempotent_effect(
        EffectKind.PLACE_ANEW,
        decision.ensemble_id,
        decision.project_id,
        due=now,
        now=now,
        details={"ticket": decision.ticket, "member": name, "host": place.host},
        same=(decision.id, decision.generation, name),
    )


def carry_out(env: UseCaseEnvironment, effect: Effect) -> str:
    """Place the member on another host than the effect's, with all others staying.

    The new decision is held for as long as the present one.

    Returns:
        The outcome, or why nothing was done.

    Raises:
        ConcurrentUpdate, NotFound: the ensemble was changed or deleted meanwhile.
        Busy: time ran out; the effect stays pending.
    """
    if not env.limits.builds_elsewhere:
        return finish(env.store, effect, "its place is kept: failed_builds is keep")
    ensemble = if_stored(env.store.ensemble, effect.subject)
    decision = None if ensemble is None else current_decision(env.store, ensemble)
    if ensemble is None or decision is None:
        return finish(env.store, effect, "the ensemble is gone")
    snapshot = env.store.snapshot()
    state = decision.state_at(snapshot.taken_at)
    if state is not DecisionState.HELD or decision.lease_id is not None:
        return finish(env.store, effect, f"the decision is {state}")
    there, host = locate_members(snapshot, ensemble), str(effect.details["host"])
    member = next(
        (one.name for one in ensemble.members if str(one.name) == effect.details["member"]), None
    )
    if (
        member is None
        or there.of(member) is not MemberStatus.HELD
        or there.places[member].host != host
    ):
        return finish(env.store, effect, "its place is not held there any more")
    outcome = "placed anew"
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda _: frozenset({member}),),
        known_hosts=KnownHosts(barred={"failed": _failed_on(env.store, effect)}),
        further_changes=lambda made: (effect_finished(effect, outcome, made.updated_at),),
        reader=RefusalReader(detail=RefusalDetail.UNSTORED),
    )
    try:
        decide_proposal(env, proposal, options_like(decision), RequestIdentity(env.ids.uuid()))
    except Infeasible as error:
        why = f"there is no other place: {error.message}{to_see_places(ensemble.name)}"
        return finish(env.store, effect, why)
    return outcome


def _failed_on(store: Store, effect: Effect) -> frozenset[str]:
    """UUIDs of the hosts on which servers of the member were deleted while its place was held."""
    same = ("ticket", "member")
    return frozenset(
        str(one.details["host"])
        for one in store.effects(effect.subject)
        if one.kind is effect.kind
        and all(one.details[name] == effect.details[name] for name in same)
    )
