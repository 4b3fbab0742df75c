"""What the loops say of trouble: once when it begins, once when it is over, faults with a trace."""

import logging
from collections.abc import Sequence

import pytest

from moorage.domain.errors import Busy, ConcurrentUpdate, Unavailable
from moorage.logs import Lasting
from moorage.logs.repeated_messages import AGAIN, QUIET
from moorage.workers.loop import FailureLog


def said(caplog: pytest.LogCaptureFixture) -> Sequence[tuple[int, str, bool]]:
    return [(one.levelno, one.getMessage(), bool(one.exc_info)) for one in caplog.records]


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_database_that_is_away_is_two_lines_for_all_loops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = FailureLog()
    for _ in range(50):
        failures.failed("expiry", raised(Busy("the database is away")))
        failures.failed("waitlist", raised(Unavailable("the ledger cannot be used")))
        failures.failed(
            "expiry", raised(Busy("the database is away")), "could not expire decision d1"
        )
        failures.recovered("trimming")
    failures.recovered("expiry")
    failures.recovered("waitlist")
    failures.recovered("waitlist")
    assert said(caplog) == [
        (logging.WARNING, "background work waits (expiry): the database is away", False),
        (logging.WARNING, "background work goes on", False),
    ]
    failures.failed("expiry", raised(Busy("again")))
    assert len(said(caplog)) == 3


def test_a_fault_has_its_trace_once_and_a_line_for_each_thing_it_hits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = FailureLog()
    for _ in range(50):
        for name in ("d1", "d2"):
            failures.failed(
                "expiry", raised(ZeroDivisionError("by nought")), f"could not expire {name}"
            )
        failures.failed(
            "expiry", raised(ConcurrentUpdate("faster", subject="d3")), "could not expire d3"
        )
    assert said(caplog) == [
        (logging.ERROR, "could not expire d1", True),
        (logging.ERROR, "could not expire d2: ZeroDivisionError: by nought", False),
        (logging.ERROR, "could not expire d3: ConcurrentUpdate: faster", False),
    ]


def test_what_lasts_is_said_again_after_long_and_what_came_back_at_once() -> None:
    now = 0.0
    lasting = Lasting(lambda: now)
    assert lasting.is_news("full")
    told = 0
    while now < AGAIN - QUIET:
        now += QUIET / 2
        told += lasting.is_news("full")
    assert told == 0
    now += QUIET
    assert lasting.is_news("full"), "it lasts since an hour"
    now += QUIET + 1
    assert lasting.is_news("full"), "it was over for a minute"
    assert not lasting.is_news("full")
    assert lasting.is_news("damaged")


def test_what_lasts_is_said_in_other_words_too_but_not_in_any_number_of_them() -> None:
    now = 0.0
    lasting = Lasting(lambda: now)
    assert lasting.is_news("away", "refused")
    assert lasting.is_news("away", "wrong password")
    assert not any(lasting.is_news("away", words) for words in ("refused", "wrong password"))
    assert sum(lasting.is_news("away", f"process {number}") for number in range(100)) == 3
    now += QUIET + 1
    assert lasting.is_news("away", "refused"), "another outage"
