"""The store contract: explanations as refusals that are listed and told."""

from dataclasses import replace

from tests.contract.conftest import SetClock
from tests.contract.test_store_bookings import write

from moorage.domain.changes import FinishExplanation, PutExplanation
from moorage.domain.events import EventCursor, EventFilter
from moorage.domain.explain import Explanation, Refusal, RefusedRequest, Stage
from moorage.domain.period import MINUTE
from moorage.store import Ledger
from moorage.usecases.paging import Page


def put(name: str, number: int, project: str = "p", stage: Stage = Stage.POLICY) -> PutExplanation:
    why = Explanation(f"{name}-{number}", "infeasible", stage, 5, 1)
    return PutExplanation(why, project, "{}", asked=RefusedRequest(f"e-{name}", name, "u"))


def told(store: Ledger) -> list[tuple[str, object]]:
    page = store.event_log.page("p", EventCursor(0), EventFilter(), 100)
    return [(one.subject, one.body["untold"]) for one in page.events]


def test_refusals_come_back_newest_first_and_filtered(store: Ledger, clock: SetClock) -> None:
    write(store, put("a", 1))
    clock.instant += MINUTE
    write(store, put("b", 1, stage=Stage.TIME))
    write(store, put("c", 1, "q"))
    found = store.refusals(project_id="p")
    assert [one.id for one in found] == ["b-1", "a-1"]
    assert found[1].asked == RefusedRequest("e-a", "a", "u")
    assert [one.id for one in store.refusals(project_id=None)] == ["c-1", "b-1", "a-1"]
    assert [one.id for one in store.refusals(project_id="p", ensemble="e-a")] == ["a-1"]
    assert [one.id for one in store.refusals(project_id="p", stage=Stage.TIME)] == ["b-1"]
    assert [one.id for one in store.refusals(project_id="p", since=clock.instant)] == ["b-1"]
    after = store.refusals(project_id="p", page=Page(limit=1, marker="b-1"))
    assert [one.id for one in after] == ["a-1"]


def test_an_explanation_is_read_with_what_was_refused(store: Ledger) -> None:
    write(store, put("a", 1))
    refusal, instance = store.explanation("a-1")
    assert (refusal.project_id, refusal.asked) == ("p", RefusedRequest("e-a", "a", "u"))
    assert (refusal.explanation.stage, instance) == (Stage.POLICY, "{}")


def test_the_same_refusal_is_told_once_a_minute(store: Ledger, clock: SetClock) -> None:
    clock.instant = 10 * MINUTE
    for number in range(3):
        write(store, put("a", number))
    assert told(store) == [("a-0", 0)]
    clock.instant += MINUTE
    write(store, put("a", 3))
    assert told(store) == [("a-0", 0), ("a-3", 2)]


def test_an_explanation_is_replaced_by_what_was_found_since(store: Ledger) -> None:
    first = put("a", 1)
    pending = replace(first.explanation, complete=False, pending_until=9)
    write(store, replace(first, explanation=pending))
    assert store.explanation("a-1")[0].explanation.pending_until == 9
    found = replace(first.explanation, stage=Stage.TIME, note="all was tried")
    write(store, FinishExplanation(found))
    assert store.explanation("a-1") == (Refusal(found, "p", first.asked), "{}")
    assert [one.id for one in store.refusals(project_id="p", stage=Stage.TIME)] == ["a-1"]
    assert told(store) == [("a-1", 0)]


def test_an_explanation_that_is_gone_is_not_written_again(store: Ledger) -> None:
    write(store, FinishExplanation(put("a", 1).explanation))
    assert list(store.refusals(project_id="p")) == []
