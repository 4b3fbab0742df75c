"""The use cases' service, which these call by HTTP, and what it refuses."""

from typing import Any

from tests.usecases.conftest import held, overtaken, service, shop, three_racks

__all__ = ["held", "overtaken", "service", "shop", "three_racks"]


def refused(answer: Any, status: int, code: str) -> Any:
    """The one error of an answer, of that status and code."""
    assert answer.status_code == status, answer.text
    (error,) = answer.json["errors"]
    assert error["code"] == f"ensemble.{code}"
    return error
