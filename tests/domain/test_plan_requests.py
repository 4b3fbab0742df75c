"""Requests for plans: each kind has what belongs to it, and nothing else."""

from typing import Any

import pytest

from moorage.domain.describe import EnsembleDescription
from moorage.domain.errors import InvalidDescription
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import PlanKind

NEW = EnsembleDescription("shop")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("drain", {"hosts": ("h1",)}),
        ("evacuate", {"domains": ("rack/r2",)}),
        ("repair", {"ensemble": "e"}),
        ("admit", {"ensemble": "e"}),
        ("admit", {"ensemble": "e", "role": "web", "count": 3}),
        ("admit", {"description": NEW}),
        ("rebalance", {"gain": 1.5}),
    ],
)
def test_what_belongs_to_a_kind_is_accepted(kind: str, given: dict[str, Any]) -> None:
    assert PlanRequest(PlanKind(kind), **given).kind.value == kind


@pytest.mark.parametrize(
    ("kind", "given", "path"),
    [
        ("drain", {}, "hosts"),
        ("drain", {"hosts": ("h1",), "ensemble": "e"}, "ensemble"),
        ("drain", {"hosts": ("h1",), "role": "web", "count": 1}, "role"),
        ("drain", {"hosts": ("h1",), "gain": 1.0}, "gain"),
        ("repair", {}, "ensemble"),
        ("repair", {"ensemble": "e", "hosts": ("h1",)}, "hosts"),
        ("repair", {"ensemble": "e", "description": NEW}, "description"),
        ("admit", {}, "ensemble"),
        ("admit", {"ensemble": "e", "description": NEW}, "ensemble"),
        ("admit", {"ensemble": "e", "role": "web"}, "role"),
        ("admit", {"ensemble": "e", "count": 2}, "role"),
        ("admit", {"description": NEW, "role": "web", "count": 2}, "role"),
        ("admit", {"ensemble": "e", "role": "web", "count": -1}, "count"),
        ("rebalance", {"domains": ("rack/r1",)}, "domains"),
        ("rebalance", {"gain": -0.1}, "gain"),
    ],
)
def test_what_does_not_is_refused_where_it_is(kind: str, given: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        PlanRequest(PlanKind(kind), **given)
    assert refused.value.path == path
