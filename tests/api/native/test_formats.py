"""Views have what their struct asks for, and no field that is not the caller's to see."""

from dataclasses import dataclass
from typing import Annotated

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.api.native.formats import view
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, HOUR
from moorage.wire.fields import FOR_OPERATORS, Alternatives, At, Length


class Part(Struct):
    number: int
    host: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET


class Whole(Struct):
    start: At
    end: At | None
    lead: Length
    tags: list[str]
    required: Alternatives
    members: list[str]
    same: Annotated[bool, Meta(extra={"attribute": "beside"})]
    part: Part
    parts: dict[str, list[Part]]
    secret: Annotated[int | UnsetType, FOR_OPERATORS] = UNSET
    nothing: str | UnsetType = UNSET
    null: str | UnsetType | None = UNSET


@dataclass
class Thing:
    number: int
    host: str = "n1"


@dataclass
class Source:
    start = 0
    end = FOREVER
    lead = HOUR
    tags = frozenset({"b", "a"})
    required = (frozenset({"B", "A"}), frozenset({"C"}))
    members = (MemberName("db", 1),)
    beside = True
    part = Thing(1)
    parts = {"x": (Thing(2),)}  # noqa: RUF012 - a double
    secret = 7
    nothing = None
    null = None


def test_a_field_is_written_as_its_type_says() -> None:
    assert view(Whole, Source(), operator=True) == Whole(
        start="1970-01-01T00:00:00Z",
        end=None,
        lead="PT1H",
        tags=["a", "b"],
        required=[["A", "B"], "C"],
        members=["db[1]"],
        same=True,
        part=Part(1, "n1"),
        parts={"x": [Part(2, "n1")]},
        secret=7,
        null=None,
    )


def test_only_operators_see_what_is_for_them_in_parts_and_given_too() -> None:
    seen = view(Whole, Source(), secret=8)
    assert seen.secret is UNSET
    assert seen.part == Part(1)
    assert seen.parts == {"x": [Part(2)]}


def test_the_first_that_has_an_attribute_gives_it_and_what_is_given_comes_before() -> None:
    found = view(Part, Thing(1), Thing(2, "n2"), operator=True, host="n3")
    assert found == Part(1, "n3")


def test_a_field_that_nothing_gives_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="number"):
        view(Part, object())


def test_so_is_a_field_that_is_given_and_there_is_none() -> None:
    with pytest.raises(TypeError, match="Part has no field numbr"):
        view(Part, Thing(1), numbr=2)
