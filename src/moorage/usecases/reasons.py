"""Why a joint decision is refused: what runs into what, and what would do instead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.explain import Stage
from moorage.domain.period import FOREVER, format_instant, parse_instant
from moorage.engine.relax import MOST
from moorage.engine.starts import Starts
from moorage.engine.whynot import NO_SMALL_CHANGE
from moorage.usecases.ahead import Ahead
from moorage.usecases.explain import UNTRIED, explained, nearest
from moorage.usecases.foresight import foreseen
from moorage.usecases.leases.instead import TIME, instead, shorter
from moorage.usecases.leases.obstacles import in_time, kept_out
from moorage.usecases.leases.outrank import sufficient
from moorage.usecases.looking import seen
from moorage.usecases.proposal import Promise
from moorage.usecases.trial import Otherwise, Trial

if TYPE_CHECKING:
    from moorage.domain.explain import Explanation, Relaxation, Window
    from moorage.domain.period import Period
    from moorage.usecases.joint import Ask
    from moorage.usecases.looking import Look, Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Proposal


def reasons(parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight) -> Explanation:
    """The explanation of what was asked and refused.

    Args:
        parts: for the solver, and to look up leases.
        proposal: what was refused.
        ask: how it was asked for.
        look: what was asked in vain; see `Looking.look`.
        sight: what was seen then.
    """
    sight = seen(parts, proposal, ask, sight)
    why = _but_as_it_is(proposal, _reasons(parts, proposal, ask, look, sight))
    if why.stage is Stage.TIME and (more := sufficient(parts, proposal, ask, look, sight)):
        why = replace(why, relaxations=(*why.relaxations[: MOST - 1], more), note="")
    if look.clash or proposal.unasked or look.built.request.fixed or why.stage is Stage.STATIC:
        return why
    return _ahead(parts, proposal, ask, look, sight, why)


def _but_as_it_is(proposal: Proposal, why: Explanation) -> Explanation:
    """Without what would leave an ensemble as it is, where one role of it was to be resized."""
    if len(proposal.resized_from) != 1:
        return why
    ((role, count),) = proposal.resized_from.items()
    ways = tuple(
        one
        for one in why.relaxations
        if (one.change.subject, one.change.name, one.change.field, one.change.after)
        != ("member", role, "count", count)
    )
    if ways == why.relaxations:
        return why
    return replace(why, relaxations=ways, note=why.note if ways else NO_SMALL_CHANGE)


def _ahead(
    parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight, why: Explanation
) -> Explanation:
    """The explanation with what lies ahead: when it fits, how much of it does now, and where."""
    now, limits = sight.snapshot.taken_at, parts.limits
    period, lead, cleaning, since = look.period, 0, 0, None
    if proposal.promise is not None:
        lead, cleaning = proposal.promise.lead, proposal.promise.cleaning
        since = now + 2 * limits.notice
    length = FOREVER if period.end == FOREVER else period.end - period.start
    last = now + limits.horizon - (0 if length == FOREVER else length)
    # A stay that begins later is what an offer is: nobody ends early for it.
    promise = proposal.promise or Promise("", period, FOREVER, offered=True)
    ahead = Ahead(
        proposal.ensemble,
        look.built.request,
        sight.snapshot,
        sight.keepers,
        displacing_from=since,
        barred=proposal.barred,
        seed=ask.seed,
        trial=Trial(parts, proposal, promise, ask, sight),
    )
    first = max(period.start, now)
    starts = Starts(first, max(first, last), length)
    otherwise = Otherwise(parts, proposal, ask, sight)
    why = foreseen(parts, why, ahead, look.built, otherwise, starts, lead=lead, cleaning=cleaning)
    earliest = why.earliest
    if earliest is None or proposal.promise is not None:
        return why
    why = _of_one_search(why, earliest, period)
    if length == FOREVER:
        return why
    # Who asked for a stay until an instant gets a window of that length, which ends after it.
    return replace(why, earliest=replace(earliest, beyond=True))


def _of_one_search(why: Explanation, earliest: Window, period: Period) -> Explanation:
    """The explanation where a later start that would do is no later than the earliest one.

    Starts are tried at the ends of leases alone; the stay may fit when somebody else ends.
    """

    def sooner(one: Relaxation) -> Relaxation:
        change = one.change
        late = (change.subject, change.field) == (TIME, "start")
        if not late or parse_instant(str(change.after)) <= earliest.start:
            return one
        return replace(one, change=replace(change, after=format_instant(earliest.start)))

    if earliest.start >= period.end:
        return why
    return replace(why, relaxations=tuple(sooner(one) for one in why.relaxations))


def _reasons(parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight) -> Explanation:
    built, snapshot, operator = look.built, sight.snapshot, proposal.operator
    if look.clash:
        why = kept_out(parts, built, snapshot, look.staying, look.period, operator=operator)
        less = shorter(parts, proposal, ask, built, sight)
        return replace(why, relaxations=less.relaxations, note="" if less.sure else UNTRIED)
    timely = None
    if proposal.promise is None and not ask.as_before:
        timely = instead(parts, proposal, ask, built, sight)
        if timely.explanation is not None:
            return timely.explanation
    why = explained(parts, built, snapshot, seed=ask.seed)
    why = nearest(parts, why, built, Otherwise(parts, proposal, ask, sight))
    lease = proposal.promise is not None
    why = in_time(parts, why, built, snapshot, operator=operator, lease=lease)
    if timely is None and why.stage is Stage.TIME:
        timely = shorter(parts, proposal, ask, built, sight)
    if timely is None or (timely.sure and not timely.relaxations):
        return why
    note = why.note if why.note == UNTRIED or not timely.relaxations else ""
    note = note if timely.sure else UNTRIED
    return replace(why, relaxations=(*timely.relaxations, *why.relaxations)[:MOST], note=note)
