"""`Prefer: wait`: a refusal's conflict at once, and what would help under its explanation's id."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from falcon.testing import Result

from moorage.api.native.protocol import preferred_wait
from moorage.domain.explain import PENDING, UNFINISHED, Explanation, Stage
from moorage.domain.period import MINUTE
from moorage.store import open_store
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import OTHER, TENANT, Service
from moorage.usecases.shared.limits import Limits
from moorage.usecases.shared.pending_work import AfterAnswer, PendingWork, leaving_work

T = TypeVar("T")
SHOP = {
    "name": "shop",
    "members": [{"name": "db", "count": 4, "flavor": "m1.xlarge"}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"}],
}
HELPS = [{"member": "db", "count": [4, 3]}, {"policy": "apart", "max_per_domain": [1, 2]}]
AT_ONCE = {"Prefer": "wait=0"}


def refused(
    service: Service,
    after: AfterAnswer | None,
    headers: dict[str, str] | None = None,
    **asked: Any,
) -> Result:
    """The answer to a request that is refused; `after` takes what is left of it."""
    body = {"ensemble": {**SHOP, "decide": {}, **asked}}
    answer: Result
    if after is None:
        answer = service.call("POST", "/ensembles", body, headers=headers)
    else:
        with leaving_work(after):
            answer = service.call("POST", "/ensembles", body, headers=headers)
    assert answer.status_code == 409, answer.json
    return answer


def explanation(answer: Result) -> dict[str, Any]:
    found: dict[str, Any] = answer.json["errors"][0]["explanation"]
    return found


def stored(service: Service, id_: str, caller: Any = TENANT) -> dict[str, Any]:
    answer = service.call("GET", f"/explanations/{id_}", caller=caller)
    assert answer.status_code == 200, answer.json
    found: dict[str, Any] = answer.json["explanation"]
    return found


def changes(why: dict[str, Any]) -> list[Any]:
    return [one["change"] for one in why["relaxations"]]


def test_the_conflict_comes_at_once_and_what_helps_follows(service: Service) -> None:
    whole = explanation(refused(service, None))
    after = AfterAnswer(PendingWork())
    answer = refused(service, after, AT_ONCE)
    why = explanation(answer)
    assert answer.headers["Preference-Applied"] == "wait=0"
    assert (why["conflict"], why["stage"]) == (whole["conflict"], "static")
    assert (why["complete"], why["pending"], why["note"]) == (False, True, PENDING)
    assert changes(why) == []
    kept = stored(service, why["id"])
    assert {name: kept[name] for name in why} == why
    after.run()
    found = stored(service, why["id"])
    own = {name: why[name] for name in ("id", "links", "revision")}
    assert {name: found[name] for name in whole} == whole | own
    assert (found["complete"], found["pending"], changes(found)) == (True, False, HELPS)


def test_a_repetition_is_answered_with_what_is_known_by_then(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    key: dict[str, Any] = {"id": "0e21f9f4-5b8a-4d8e-9c56-7c5b0a6ec8f1"}
    first = explanation(refused(service, after, AT_ONCE, **key))
    assert explanation(refused(service, None, **key)) == first
    after.run()
    again = explanation(refused(service, None, **key))
    assert (again["id"], again["pending"], changes(again)) == (first["id"], False, HELPS)


def test_who_waits_long_enough_is_answered_as_without_a_preference(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    answer = refused(service, after, {"Prefer": "wait=600"})
    why = explanation(answer)
    assert "Preference-Applied" not in answer.headers
    assert (why["complete"], why["pending"], changes(why)) == (True, False, HELPS)
    assert not after.pending


def test_what_its_own_time_cut_short_is_not_searched_for_again(three_racks: str) -> None:
    service = Service(three_racks, limits=Limits(explanation_budget=0))
    after = AfterAnswer(PendingWork())
    why = explanation(refused(service, after, {"Prefer": "wait=600"}))
    assert (why["complete"], why["pending"], after.pending) == (False, False, False)
    service.close()


def test_it_is_pending_until_an_instant_and_not_at_it() -> None:
    why = Explanation("x", "infeasible", Stage.POLICY, 0, 1, complete=False, pending_until=5)
    assert why.at(4) is why
    assert (why.at(5).pending_until, why.at(5).note) == (None, UNFINISHED)


def test_without_a_process_that_goes_on_all_is_searched_before_the_answer(
    service: Service,
) -> None:
    answer = refused(service, None, AT_ONCE)
    assert "Preference-Applied" not in answer.headers
    assert changes(explanation(answer)) == HELPS


def test_a_project_has_one_explanation_pending_and_the_next_is_searched_at_once(
    service: Service,
) -> None:
    bounds = PendingWork()
    first, second = AfterAnswer(bounds), AfterAnswer(bounds)
    assert explanation(refused(service, first, AT_ONCE))["pending"]
    assert not explanation(refused(service, second, AT_ONCE, name="other"))["pending"]
    first.run()
    first.close()
    third = AfterAnswer(bounds)
    assert explanation(refused(service, third, AT_ONCE, name="third"))["pending"]


class Onlooker:
    """Notes at each commit whether the project could have another explanation pending."""

    def __init__(self, bounds: PendingWork) -> None:
        self.bounds = bounds
        self.free: list[bool] = []

    def commit(self, work: Callable[[], T]) -> T:
        self.free.append(self.bounds.begin(TENANT.project_id))
        if self.free[-1]:
            self.bounds.end(TENANT.project_id)
        return work()

    def refresh(self, work: Callable[[], T]) -> T:
        return work()


def test_what_is_found_is_counted_no_longer_when_it_can_be_read(
    three_racks: str, tmp_path: Path
) -> None:
    """Who reads that it is no longer pending and asks again at once does not wait for the whole."""
    database = new_database(tmp_path)
    service = Service(three_racks, database=database)
    bounds = PendingWork()
    seen = Onlooker(bounds)
    store = open_store(database, clock=service.clock, watch=seen)
    service.env = replace(service.env, store=store)
    after = AfterAnswer(bounds)
    why = explanation(refused(service, after, AT_ONCE))
    assert (why["pending"], seen.free) == (True, [False])
    after.run()
    assert (stored(service, why["id"])["pending"], seen.free) == (False, [False, True])
    store.close()
    service.close()


def test_all_projects_together_have_a_bounded_number_pending(service: Service) -> None:
    bounds = PendingWork(1)
    assert bounds.begin("some other project")
    assert not explanation(refused(service, AfterAnswer(bounds), AT_ONCE))["pending"]
    bounds.end("some other project")
    assert explanation(refused(service, AfterAnswer(bounds), AT_ONCE))["pending"]


def test_a_search_whose_process_ended_is_told_as_not_finished(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    why = explanation(refused(service, after, AT_ONCE))
    after.close()
    after.run()  # nothing is left
    assert stored(service, why["id"])["pending"]
    service.clock.pass_by(MINUTE)
    found = stored(service, why["id"])
    assert (found["complete"], found["pending"], found["note"]) == (False, False, UNFINISHED)
    assert found["conflict"] == why["conflict"]


def test_an_explanation_that_is_no_longer_kept_is_not_written_again(three_racks: str) -> None:
    service = Service(three_racks, limits=Limits(explanations=1))
    after = AfterAnswer(PendingWork())
    why = explanation(refused(service, after, AT_ONCE))
    newer = explanation(refused(service, None, name="newer"))
    after.run()
    listed = service.call("GET", "/explanations").json["explanations"]
    assert [one["id"] for one in listed] == [newer["id"]]
    assert service.call("GET", f"/explanations/{why['id']}").status_code == 404
    service.close()


def test_an_explanation_asked_for_by_itself_may_follow_too(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    body = {"explanation": {"members": SHOP["members"], "policies": SHOP["policies"]}}
    with leaving_work(after):
        answer = service.call("POST", "/explanations", body, headers=AT_ONCE)
    why = answer.json["explanation"]
    assert (why["pending"], answer.headers["Preference-Applied"]) == (True, "wait=0")
    after.run()
    assert changes(stored(service, why["id"])) == HELPS


def test_a_dry_run_keeps_nothing_so_all_is_in_its_answer(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    body = {"ensemble": {**SHOP, "decide": {}}}
    with leaving_work(after):
        answer = service.call(
            "POST", "/ensembles", body, headers=AT_ONCE, query={"dry_run": "true"}
        )
    assert changes(explanation(answer)) == HELPS
    assert not after.pending


def test_another_project_reads_nothing_of_it(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    why = explanation(refused(service, after, AT_ONCE))
    path = f"/explanations/{why['id']}"
    assert service.call("GET", path, caller=OTHER).status_code == 404


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=10", 10),
        ('return=minimal, Wait = "7" ; x=1', 7),
        ("respond-async, wait=3, wait=9", 3),
        ('note="a, wait=5", wait=2', 2),
        ("wait=soon", None),
        ("wait=-1", None),
        ("wait", None),
        ("waiting=4", None),
        ('"unclosed', None),
        ("", None),
        (None, None),
    ],
)
def test_wait_is_read_from_the_header_as_rfc_7240_has_it(
    header: str | None, seconds: int | None
) -> None:
    assert preferred_wait(header) == seconds


def test_a_wait_that_is_none_is_ignored(service: Service) -> None:
    after = AfterAnswer(PendingWork())
    assert changes(explanation(refused(service, after, {"Prefer": "wait=soon"}))) == HELPS
