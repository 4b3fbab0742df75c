import pytest

from moorage.client import errors
from moorage.client.errors import error_for


def body(status: int, code: str, **more: object) -> dict[str, object]:
    error = {"status": status, "code": code, "title": "T", "detail": "D", "request_id": "req-1"}
    return {"errors": [error | more]}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "ensemble.invalid_description", errors.Invalid),
        (400, "ensemble.contradiction", errors.Contradiction),
        (401, "", errors.Forbidden),
        (403, "ensemble.forbidden", errors.Forbidden),
        (403, "ensemble.quota_exceeded", errors.LimitReached),
        (404, "ensemble.not_found", errors.NotFound),
        (409, "ensemble.infeasible", errors.Infeasible),
        (409, "ensemble.description_mismatch", errors.DescriptionMismatch),
        (409, "ensemble.hold_expired", errors.Conflict),
        (412, "ensemble.precondition_failed", errors.Stale),
        (428, "ensemble.precondition_required", errors.Conflict),
        (500, "", errors.ServerFault),
        (503, "ensemble.busy", errors.Busy),
        (418, "tea", errors.ApiError),
    ],
)
def test_code_and_status_make_the_type(status: int, code: str, kind: type[errors.ApiError]) -> None:
    found = error_for(status, body(status, code))
    assert type(found) is kind
    assert (found.code, found.detail, found.request_id) == (code, "D", "req-1")


@pytest.mark.parametrize("odd", [None, [], {}, {"errors": []}, {"errors": ["x"]}, "text", 7])
def test_any_body_makes_an_error(odd: object) -> None:
    assert isinstance(error_for(404, odd), errors.NotFound)


def test_an_infeasible_answer_carries_its_explanation() -> None:
    found = error_for(409, body(409, "ensemble.infeasible", explanation={"stage": "policy"}))
    assert isinstance(found, errors.Infeasible)
    assert found.explanation == {"stage": "policy"}
    bare = error_for(409, body(409, "ensemble.infeasible"))
    assert isinstance(bare, errors.Infeasible)
    assert bare.explanation == {}
