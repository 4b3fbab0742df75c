import pytest

from moorage.client.errors import Ambiguous, Missing
from moorage.client.lookup import pick

THINGS = [
    {"id": "b1d7aaaa-0000-4000-8000-000000000001", "name": "shop"},
    {"id": "b1d8aaaa-0000-4000-8000-000000000002", "name": "shop2"},
    {"id": "c0ffee00-0000-4000-8000-000000000003", "name": "b1d7"},
]


@pytest.mark.parametrize(
    ("text", "index"),
    [("shop", 0), ("b1d8", 1), ("c0", 2), (THINGS[1]["id"], 1), ("b1d7", 2)],
    ids=["name", "beginning", "short", "whole", "a name wins over a beginning"],
)
def test_what_people_type_finds_the_thing(text: str, index: int) -> None:
    assert pick("ensemble", text, THINGS) == THINGS[index]["id"]


def test_two_that_fit_are_named() -> None:
    with pytest.raises(Ambiguous, match="2 ensembles match 'b1'; use an id: b1d7aaaa-"):
        pick("ensemble", "b1", THINGS)


@pytest.mark.parametrize("text", ["nothing", "ff", "", "*", "b"])
def test_nothing_that_fits_is_told(text: str) -> None:
    with pytest.raises(Missing, match="no ensemble"):
        pick("ensemble", text, THINGS)


def test_a_handle_wins_over_a_name() -> None:
    first, second = ({"handle": f"L{n}", **THINGS[n]} for n in (0, 1))
    assert pick("lease", "L0", [first, second | {"name": "L0"}]) == first["id"]
    assert pick("lease", "L0", [second | {"name": "L0"}]) == second["id"]


def test_namesakes_are_told_apart() -> None:
    terms = {"name": "x", "handle": "L4", "status": "active", "start": "2026-12-07T08:00:00Z"}
    told = r"b1d7aaaa-\S+ \(L4, active, from 2026-12-07T08:00:00Z\), "
    with pytest.raises(Ambiguous, match=r"3 .* match 'x'"):
        pick("lease", "x", [{**one, "name": "x"} for one in THINGS])
    two = [{**one, **terms, "handle": f"L{n}"} for n, one in enumerate(THINGS, 4)]
    with pytest.raises(Ambiguous, match=told):
        pick("lease", "x", two)
