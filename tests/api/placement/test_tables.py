"""The dialect's tables agree with each other and with the domain."""

import re
from pathlib import Path

import pytest

from moorage.api import placement
from moorage.api.placement.errors import TABLE as ERRORS
from moorage.api.placement.errors import refusal_of
from moorage.api.placement.request import Request
from moorage.api.placement.routes import TABLE as ROUTES
from moorage.api.placement.routes import find
from moorage.api.placement.schemas import BODIES, QUERIES
from moorage.api.placement.versions import HISTORY
from moorage.domain import errors as domain

OPERATIONS = {operation for _, _, operation, _, _ in ROUTES}


def test_every_operation_named_anywhere_is_routed() -> None:
    named = set(BODIES) | set(QUERIES)
    for change in HISTORY.changes:
        for mapping in (
            change.routes,
            change.instead,
            change.schemas,
            change.queries,
            change.lift,
            change.lower,
        ):
            named |= set(mapping)
    for row in ERRORS:
        named |= row.on
    assert named <= OPERATIONS, named - OPERATIONS


def test_operations_are_named_once_and_found_by_their_path() -> None:
    assert len(OPERATIONS) == len(ROUTES)
    for method, path, operation, _, _ in ROUTES:
        route, items = find(
            method, path.format(uuid="u", resource_class="r", name="n", consumer_uuid="c")
        )
        assert route.operation == operation
        assert set(items) == set(re.findall(r"{(\w+)}", path))


def test_every_feature_asked_for_is_declared() -> None:
    declared = {change.feature for change in HISTORY.changes}
    package = Path(placement.__file__).parent
    asked = {
        name
        for file in package.rglob("*.py")
        for name in re.findall(r'\.has\("([^"]+)"\)', file.read_text(encoding="utf-8"))
    }
    assert asked
    assert asked <= declared


def test_only_the_history_compares_versions() -> None:
    package = Path(placement.__file__).parent
    numbers = re.compile(r"Version\(|negotiated\.version [<>=]|\(1, \d+\)")
    for file in package.rglob("*.py"):
        assert not numbers.search(file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (domain.InvalidDescription("x"), 400, "undefined_code"),
        (domain.NotFound("resource provider", "x"), 404, "undefined_code"),
        (domain.Forbidden("x"), 403, "undefined_code"),
        (domain.LimitExceeded("x", limit=1, requested=2), 403, "undefined_code"),
        (domain.ProviderConflict("x", subject="p"), 409, "concurrent_update"),
        (domain.ConsumerConflict("c", expected=1, actual=None), 409, "concurrent_update"),
        (domain.DuplicateName("resource provider", "x"), 409, "undefined_code"),
        (domain.InUse("trait", "x"), 409, "undefined_code"),
        (domain.InventoryInUse("p", ("VCPU",)), 409, "inventory.inuse"),
        (domain.CapacityExceeded("p", "VCPU", free=0, requested=1), 409, "undefined_code"),
        (domain.HoldExpired("x"), 409, "undefined_code"),
        (domain.WrongState("x"), 409, "undefined_code"),
        (domain.Busy("x"), 503, "undefined_code"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_error_has_an_answer(
    error: domain.MoorageError, status: int, code: str
) -> None:
    request = Request("providers.show", HISTORY.at(HISTORY.maximum), {"uuid": "u"}, (), b"", "")
    refusal = refusal_of(error, request)
    assert (refusal.status, refusal.code) == (status, f"placement.{code}")
    assert refusal.message


def test_the_error_table_ends_with_every_root_of_the_hierarchy() -> None:
    """So that a new domain error can never fall through."""
    catch_all = {row.error for row in ERRORS if not row.on and row.kind is None}
    for kind in vars(domain).values():
        if isinstance(kind, type) and issubclass(kind, domain.MoorageError):
            leaf = kind is not domain.MoorageError
            assert not leaf or any(issubclass(kind, row) for row in catch_all), kind
