"""A dry run that does not fit writes nothing; who asks why finds the answer again."""

from typing import Any

import pytest

from moorage.domain.errors import Busy
from moorage.testing.service import Service

DRY = {"dry_run": "true"}
TOO_MUCH: dict[str, Any] = {
    "name": "e",
    "members": [{"name": "a", "count": 1, "resources": {"VCPU": 100_000}}],
}


@pytest.mark.parametrize("more", [{"decide": {}}, {}], ids=["decided", "described"])
def test_a_dry_run_leaves_the_ledger_as_it_was(service: Service, more: dict[str, Any]) -> None:
    before = service.store.snapshot().revision
    body = {"ensemble": {**TOO_MUCH, **more}}
    (error,) = service.call("POST", "/ensembles", body, query=DRY).json["errors"]
    assert error["code"] == "ensemble.infeasible"
    assert error["explanation"]["conflict"], "the answer carries it in full"
    assert not error.get("links"), "nothing to be followed"
    assert not error["explanation"].get("links")
    assert service.call("GET", f"/explanations/{error['explanation']['id']}").status_code == 404
    assert service.store.snapshot().revision == before


def test_a_refusal_that_was_no_dry_run_is_kept(service: Service) -> None:
    body = {"ensemble": {**TOO_MUCH, "decide": {}}}
    (error,) = service.call("POST", "/ensembles", body).json["errors"]
    (link,) = error["links"]
    assert link["href"].endswith(error["explanation"]["id"])
    assert service.call("GET", f"/explanations/{error['explanation']['id']}").status_code == 200


def test_an_explanation_that_was_asked_for_is_kept(service: Service) -> None:
    asked = {"members": TOO_MUCH["members"]}
    made = service.call("POST", "/explanations", {"explanation": asked})
    found = made.json["explanation"]
    again = service.call("GET", f"/explanations/{found['id']}")
    assert (again.status_code, again.json["explanation"]["conflict"]) == (200, found["conflict"])


def test_an_explanation_that_cannot_be_kept_is_no_answer_to_who_asked_for_it_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise Busy("others write")

    monkeypatch.setattr(service.store, "commit", refuse)
    asked = {"members": TOO_MUCH["members"]}
    assert service.call("POST", "/explanations", {"explanation": asked}).status_code == 503
    refused = service.call("POST", "/ensembles", {"ensemble": {**TOO_MUCH, "decide": {}}})
    assert refused.status_code == 409, "a refusal is worth more than its record"
    assert not refused.json["errors"][0].get("links")
