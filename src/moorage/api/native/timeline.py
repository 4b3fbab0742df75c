"""`/v1/timeline`: leases and what else takes time, laid out for a chart."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from moorage.api.native.kept_bodies import PLAIN, kept_reply
from moorage.api.native.paging import ENCODER
from moorage.api.native.reading import instant
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import FOREVER, SECOND, format_instant
from moorage.usecases.shared.kept_answers import KeptAnswer
from moorage.usecases.timeline import RowsBy, TimelineQuery, timeline
from moorage.wire import timeline as wire

if TYPE_CHECKING:
    from moorage.api.native.call import Call, Reply
    from moorage.usecases.paging import Page
    from moorage.usecases.timeline import Bar, Timeline

MOST_ROWS = 10_000
"""Rows of a page at most: a chart shows more of them than a list."""


def show(call: Call) -> Reply:
    """GET: a page of the rows that have bars in a period."""
    since, until = call.query.get("from"), call.query.get("to")
    query = TimelineQuery(
        since=None if since is None else instant(since, "from"),
        until=None if until is None else instant(until, "to"),
        rows_by=_rows_by(call.query.get("rows", RowsBy.LEASE.value)),
        closed=call.flag("closed"),
        all_projects=call.flag("all_projects"),
    )
    page, caller = call.page(most=MOST_ROWS), call.caller
    question = (query, page, caller.project_id, caller.operator, call.base)

    def make() -> KeptAnswer:
        # Only the making counts as expensive: an answer that is kept costs nearly nothing.
        with call.env.admission.turn(caller):
            return _made(call, query, page)

    kept = call.env.kept_answers.current(question, call.env.store.snapshot(), make)
    return kept_reply(call, kept.tag, kept.bodies, lambda: kept.bodies[PLAIN])


def _made(call: Call, query: TimelineQuery, page: Page) -> KeptAnswer:
    found = call.perform(timeline, query, page)
    shown = _shown(found)
    links = [call.next_link("timeline", found.rows[-1].id, page)] if found.more else []
    tag = blake2b(ENCODER.encode((shown, links)), digest_size=12).hexdigest()
    body = wire.OneTimeline(
        shown, links, found.snapshot.revision, format_instant(found.snapshot.taken_at)
    )
    return KeptAnswer(
        revision=found.snapshot.revision,
        computed_at=found.snapshot.taken_at,
        valid_until=found.valid_until,
        tag=tag,
        bodies={PLAIN: ENCODER.encode(body)},
    )


def _rows_by(text: str) -> RowsBy:
    try:
        return RowsBy(text)
    except ValueError:
        known = ", ".join(RowsBy)
        raise InvalidDescription(f"rows are by {known}; not {text!r}", path="rows") from None


def _shown(found: Timeline) -> wire.TimelineValue:
    pairs = [(n, one) for n, row in enumerate(found.rows) for one in row.bars]
    bars = [bar for _, bar in pairs]
    return wire.TimelineValue(
        start=format_instant(found.window.start),
        end=format_instant(found.window.end),
        rows_by=found.rows_by.value,
        rows=wire.TimelineRows(
            id=[row.id for row in found.rows],
            label=[row.label for row in found.rows],
            lanes=[row.height for row in found.rows],
        ),
        bars=wire.TimelineBars(
            row=[n for n, _ in pairs],
            lane=[lane for row in found.rows for lane in row.lanes],
            kind=[bar.kind.value for bar in bars],
            id=[bar.id for bar in bars],
            label=[bar.label for bar in bars],
            start=[bar.period.start // SECOND for bar in bars],
            end=[_end(bar) for bar in bars],
            lead=[(bar.period.start - bar.occupied.start) // SECOND for bar in bars],
            cleaning=[(bar.occupied.end - bar.period.end) // SECOND for bar in bars],
            state=[bar.state for bar in bars],
            project=[bar.project for bar in bars],
            series=[bar.series for bar in bars],
        ),
    )


def _end(bar: Bar) -> int | None:
    return None if bar.period.end == FOREVER else bar.period.end // SECOND
