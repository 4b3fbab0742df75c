"""The arithmetic of quotas, against counting every instant by hand."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import QuotaExceeded
from moorage.domain.period import DAY, HOUR, SECOND, Period, format_instant, parse_instant
from moorage.domain.quotas import UNLIMITED, QuotaName, QuotaUse
from moorage.engine.time.quotas import (
    LeaseUse,
    ProjectLeases,
    QuotaTerms,
    free_units,
    peak_use,
    quota_violation,
)

WINDOW = 6 * SECOND
LAST = 120
"""Where all that is generated is over, in seconds."""


def ceiling(limits: Mapping[QuotaName, int], window: int = WINDOW) -> QuotaTerms:
    return QuotaTerms(lambda name: limits.get(name, UNLIMITED), window)


def use(start: int, length: int, units: int) -> QuotaUse:
    return QuotaUse(units, start * SECOND, (start + length) * SECOND)


USES = st.lists(
    st.builds(use, st.integers(0, 30), st.integers(1, 12), st.integers(1, 4)), max_size=6
)
HOURS = 3600
"""Unit-seconds of a unit-hour: all limits below are in whole hours, so units are made large."""


def units_at(uses: Sequence[QuotaUse], second: int) -> int:
    return sum(u.units for u in uses if u.start <= second * SECOND < u.end)


def in_window(uses: Sequence[QuotaUse], second: int) -> int:
    """Unit-seconds of those that the window touches which begins at this second."""
    at = second * SECOND
    return sum(
        u.units * (min(u.end - u.start, WINDOW) // SECOND)
        for u in uses
        if u.start - WINDOW <= at < u.end
    )


def passes(
    limits: Mapping[QuotaName, int], others: Sequence[QuotaUse], own: Sequence[QuotaUse]
) -> bool:
    """Counted at every second where the lease itself is."""
    every = [*others, *own]
    for second in range(-WINDOW // SECOND, LAST):
        for name, count, factor in (
            (QuotaName.UNITS, units_at, 1),
            (QuotaName.UNIT_HOURS, in_window, HOURS),
        ):
            limit = limits.get(name)
            if limit is not None and count(own, second) and count(every, second) > limit * factor:
                return False
    return True


def moved(own: Sequence[QuotaUse], by: int) -> list[QuotaUse]:
    return [QuotaUse(u.units, u.start + by * SECOND, u.end + by * SECOND) for u in own]


@given(USES, st.integers(0, 20), st.integers(1, 9), st.integers(1, 5), st.integers(0, 9))
def test_units_and_hours_are_judged_as_if_counted_at_every_second(
    others: list[QuotaUse], start: int, length: int, units: int, most: int
) -> None:
    big = [QuotaUse(u.units * HOURS, u.start, u.end) for u in others]
    own = [use(start, length, units * HOURS)]
    limits = {QuotaName.UNITS: most * HOURS, QuotaName.UNIT_HOURS: most * 5}
    asked = LeaseUse(Period(own[0].start, own[0].end), own)
    found = quota_violation(ceiling(limits), ProjectLeases(big, ()), asked, 0)
    assert (found is None) == passes(limits, big, own)
    if found is None:
        return
    shifts = [by for by in range(LAST // 2) if passes(limits, big, moved(own, by))]
    first = own[0].start + shifts[0] * SECOND if shifts else None
    assert found.passes_at == first


@given(USES, st.integers(0, 20), st.integers(1, 9), st.integers(0, 12), st.integers(0, 60))
def test_the_room_is_what_just_passes(
    others: list[QuotaUse], start: int, length: int, units: int, hours: int
) -> None:
    big = [QuotaUse(u.units * HOURS, u.start, u.end) for u in others]
    limits = {QuotaName.UNITS: units * HOURS, QuotaName.UNIT_HOURS: hours}
    period = Period(start * SECOND, (start + length) * SECOND)
    most = free_units(ceiling(limits), ProjectLeases(big, ()), period, 0)
    assert most is not None
    for more, fits in ((most, True), (most + 1, False)):
        one = [QuotaUse(more, period.start, period.end)]
        if more:
            assert passes(limits, big, one) is fits


@given(USES, st.integers(0, 40))
def test_the_peak_is_the_highest_level_from_now_on(uses: list[QuotaUse], now: int) -> None:
    big = [QuotaUse(u.units * HOURS, u.start, u.end) for u in uses]
    limits = ceiling({})
    windows = range(now - WINDOW // SECOND, LAST)
    assert peak_use(limits, big, QuotaName.UNITS, now * SECOND) == max(
        units_at(big, at) for at in range(now, LAST)
    )
    assert peak_use(limits, big, QuotaName.UNIT_HOURS, now * SECOND) == max(
        in_window(big, at) // HOURS for at in windows
    )


def test_the_story_of_two_leases_in_one_window() -> None:
    first = QuotaUse(
        4, parse_instant("2026-12-07T08:00:00Z"), parse_instant("2026-12-11T18:00:00Z")
    )
    start, end = parse_instant("2026-12-14T08:00:00Z"), parse_instant("2026-12-18T18:00:00Z")
    asked = LeaseUse(Period(start, end), [QuotaUse(4, start, end)])
    limits = ceiling({QuotaName.UNIT_HOURS: 500}, 30 * DAY)
    found = quota_violation(
        limits, ProjectLeases([first], [first.end]), asked, parse_instant("2026-12-01T00:00:00Z")
    )
    assert found is not None
    assert found.message == (
        "lease-unit-hours limit 500 used 424 requested 424   passes at 2027-01-10T18:00:00Z"
    )
    assert (found.left, found.passes_at) == (76, first.end + 30 * DAY)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({QuotaName.MAX_LENGTH: HOUR}, "lease-max-length limit 1h requested 2h   never passes"),
        ({QuotaName.HORIZON: HOUR}, "lease-horizon limit 1h requested 11h   never passes"),
        (
            {QuotaName.HORIZON: 5 * HOUR},
            "lease-horizon limit 5h requested 11h   passes when asked for at "
            + format_instant(6 * HOUR),
        ),
        (
            {QuotaName.LEASES: 2},
            "leases limit 2 used 3 requested 1   passes when asked for at 1970-01-01T05:00:00Z",
        ),
        ({QuotaName.LEASES: 0}, "leases limit 0 used 3 requested 1   never passes"),
        ({QuotaName.UNITS: 1}, "lease-units limit 1 used 1 requested 2   never passes"),
    ],
)
def test_each_limit_says_when_it_would_pass(limits: dict[QuotaName, int], told: str) -> None:
    others = ProjectLeases([QuotaUse(1, 9 * HOUR, 10 * HOUR)], [7 * HOUR, 4 * HOUR, 5 * HOUR])
    asked = LeaseUse(Period(9 * HOUR, 11 * HOUR), [QuotaUse(2, 9 * HOUR, 11 * HOUR)])
    found = quota_violation(ceiling(limits), others, asked, 0)
    assert found is not None
    assert found.message == told


def test_what_takes_no_more_than_it_did_passes() -> None:
    limits = dict.fromkeys(QuotaName, 0)
    before = [QuotaUse(4, 2 * HOUR, 8 * HOUR)]
    others = ProjectLeases([QuotaUse(9, 0, 20 * HOUR)], [20 * HOUR])
    for start, end, units, fits in (
        (2, 8, 4, True),
        (3, 7, 3, True),
        (2, 8, 5, False),
        (2, 9, 4, False),
    ):
        period = Period(start * HOUR, end * HOUR)
        asked = LeaseUse(
            period, [QuotaUse(units, period.start, period.end)], Period(2 * HOUR, 8 * HOUR), before
        )
        assert (quota_violation(ceiling(limits), others, asked, 0) is None) is fits


@given(
    USES,
    st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 4)),
    st.tuples(st.integers(1, 5), st.integers(5, 30), st.integers(0, 3), st.integers(1, 40)),
)
def test_when_it_passes_is_true_of_all_limits_together(
    others: list[QuotaUse], own: tuple[int, int, int], most: tuple[int, int, int, int]
) -> None:
    """Asked with the start it names, at the time it names, it passes; not a second before."""
    start, length, units = own
    unit_limit, hours, leases, horizon = most
    big = [QuotaUse(u.units * HOURS, u.start, u.end) for u in others]
    limits = ceiling(
        {
            QuotaName.UNITS: unit_limit * HOURS,
            QuotaName.UNIT_HOURS: hours,
            QuotaName.LEASES: leases,
            QuotaName.HORIZON: horizon * SECOND,
        }
    )

    def refused(begin: int, now: int) -> QuotaExceeded | None:
        lessee = ProjectLeases(big, [u.end for u in big if u.end > now])
        one = QuotaUse(units * HOURS, begin, begin + length * SECOND)
        return quota_violation(limits, lessee, LeaseUse(Period(one.start, one.end), [one]), now)

    first = start * SECOND
    found = refused(first, 0)
    if found is None:
        return
    if found.passes_at is None:
        seconds = range(start, LAST // 2)
        assert all(refused(s * SECOND, a * SECOND) for s in seconds for a in {0, s // 2, s})
        return
    begin = first if found.when_asked else found.passes_at
    asked = found.passes_at if found.when_asked else found.asked_from or 0
    assert refused(begin, asked) is None
    if asked:
        assert refused(begin, asked - SECOND) is not None
    for sooner in range(start, begin // SECOND):
        assert refused(sooner * SECOND, min(asked, sooner * SECOND)) is not None


def test_a_start_that_the_horizon_forbids_says_when_to_ask_for_it() -> None:
    now = parse_instant("2026-11-21T00:00:00Z")
    taken = QuotaUse(
        3, parse_instant("2026-11-23T00:00:00Z"), parse_instant("2026-11-23T10:00:00Z")
    )
    start = parse_instant("2026-11-24T00:00:00Z")
    asked = LeaseUse(Period(start, start + 20 * HOUR), [QuotaUse(4, start, start + 20 * HOUR)])
    limits = ceiling({QuotaName.UNIT_HOURS: 100, QuotaName.HORIZON: 10 * DAY}, 30 * DAY)
    found = quota_violation(limits, ProjectLeases([taken], [taken.end]), asked, now)
    assert found is not None
    assert found.message == (
        "lease-unit-hours limit 100 used 30 requested 80   "
        "passes at 2026-12-23T10:00:00Z, asked for at 2026-12-14T06:00:00Z or later"
    )
    assert found.asked_from == parse_instant("2026-12-14T06:00:00Z")
