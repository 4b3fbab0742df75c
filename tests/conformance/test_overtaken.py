"""Requests that others overtake half-way: answers are of one state, and no change undoes another.

What overtakes happens between two looks at the ledger, as another replica's commit would.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Self

import pytest
from tests.conformance.conftest import Wire

from moorage.api.placement.access import DEFAULT
from moorage.domain.actors import Actor
from moorage.store import Ledger, open_store

pytestmark = pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)

CONSUMER = "0000000c-0000-4000-8000-000000000000"
LOOKS = frozenset(
    {"allocations_of_consumer", "allocations_of_provider", "consumer", "provider", "snapshot"}
)


class Overtaken:
    """A ledger in which something happens as soon as its `nth` look is over."""

    def __init__(self, ledger: Ledger, nth: int, happens: Callable[[], object]) -> None:
        self._ledger = ledger
        self._looks = count(1)
        self._nth = nth
        self._happens = happens

    def by(self, actor: Actor) -> Self:
        """This one, whoever acts."""
        del actor
        return self

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ledger, name)
        if name not in LOOKS:
            return found

        def look(*given: object) -> object:
            seen = found(*given)
            if next(self._looks) == self._nth:
                self._happens()
            return seen

        return look


@pytest.fixture
def ledgers(database_url: str) -> Iterator[tuple[Ledger, Ledger]]:
    """Two replicas on one database."""
    pair = open_store(database_url), open_store(database_url)
    yield pair
    for one in pair:
        one.close()


@pytest.fixture
def there(ledgers: tuple[Ledger, Ledger]) -> Wire:
    """The replica that overtakes."""
    return Wire(ledgers[1], DEFAULT, "")


def overtaken(ledgers: tuple[Ledger, Ledger], nth: int, happens: Callable[[], object]) -> Wire:
    """The replica that is overtaken after its `nth` look."""
    store: Any = Overtaken(ledgers[0], nth, happens)
    return Wire(store, DEFAULT, "")


def test_what_a_consumer_has_is_of_one_state(ledgers: tuple[Ledger, Ledger], there: Wire) -> None:
    old, new = there.provider("old", VCPU=4), there.provider("new", VCPU=4)
    assert there.allocate(CONSUMER, {old: {"VCPU": 1}}).status == 204
    path = f"/allocations/{CONSUMER}"
    states = [there("GET", path).json]

    def move() -> None:
        assert there.allocate(CONSUMER, {new: {"VCPU": 1}}).status == 204
        assert there("DELETE", f"/resource_providers/{old}").status == 204
        states.append(there("GET", path).json)

    answer = overtaken(ledgers, 1, move)("GET", path)
    assert answer.json in states
    assert [list(one["allocations"]) for one in states] == [[old], [new]]


def test_what_is_on_a_provider_is_of_one_state(ledgers: tuple[Ledger, Ledger], there: Wire) -> None:
    host = there.provider("host", VCPU=4)
    path = f"/resource_providers/{host}/allocations"
    states = [there("GET", path).json]

    def take() -> None:
        assert there.allocate(CONSUMER, {host: {"VCPU": 1}}).status == 204
        states.append(there("GET", path).json)

    assert overtaken(ledgers, 1, take)("GET", path).json in states
    assert len({one["resource_provider_generation"] for one in states}) == len(states)


def parent(wire: Wire, provider: str) -> Any:
    return wire("GET", f"/resource_providers/{provider}").json["parent_provider_uuid"]


def test_another_name_leaves_a_provider_where_it_was_put_meanwhile(
    ledgers: tuple[Ledger, Ledger], there: Wire
) -> None:
    above, child = there.provider("above"), there.provider("child")
    path = f"/resource_providers/{child}"

    def put() -> None:
        body = {"name": "child", "parent_provider_uuid": above}
        assert there("PUT", path, body).status == 200

    renaming = overtaken(ledgers, 1, put)
    assert renaming("PUT", path, {"name": "renamed"}).status == 200
    assert parent(there, child) == above


def test_a_move_from_the_top_only_is_none_from_elsewhere(
    ledgers: tuple[Ledger, Ledger], there: Wire
) -> None:
    above, other, child = (there.provider(name) for name in ("above", "other", "child"))
    path = f"/resource_providers/{child}"

    def put() -> None:
        body = {"name": "child", "parent_provider_uuid": above}
        assert there("PUT", path, body).status == 200

    moving = overtaken(ledgers, 2, put)
    body = {"name": "child", "parent_provider_uuid": other}
    refused = moving("PUT", path, body, version="1.36")
    assert (refused.status, refused.json["errors"][0]["code"]) == (
        409,
        "placement.concurrent_update",
    )
    assert parent(there, child) == above
    assert moving("PUT", path, body, version="1.37").status == 200
    assert parent(there, child) == other
