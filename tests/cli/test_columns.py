"""`-c`: some columns of what is shown."""

from typing import Any

import pytest

from moorage.cli.listing import arranged
from moorage.cli.output import NoColumn, Shown, as_text, chosen, fields, parts, stack, table

ONE = fields(
    [("id", "1f2e"), ("before start", "none"), ("degraded", None), ("claims", None)],
    aside=[("degraded", False), ("claimed", "0/4"), ("id", "another")],
)
MANY = table(["lease", "#places"], [("L1", 4), ("L2", None)])


@pytest.mark.parametrize(
    ("wanted", "line", "body"),
    [
        (["id"], "1f2e", {"id": "1f2e"}),
        (["claimed", "ID"], "0/4  1f2e", {"claimed": "0/4", "id": "1f2e"}),
        (["before-start"], "none", {"before start": "none"}),
        (["degraded", "claims"], "false  -", {"degraded": False, "claims": None}),
    ],
)
def test_of_one_thing_values_stand_on_one_line(
    wanted: list[str], line: str, body: dict[str, Any]
) -> None:
    shown = chosen(Shown({"lease": {}}, stack(ONE, "", MANY)), wanted)
    assert (shown.text, shown.body) == (line, body)


def test_of_a_listing_rows_are_narrower() -> None:
    shown = chosen(Shown({}, MANY), ["places", "lease"])
    assert shown.body == [{"places": 4, "lease": "L1"}, {"places": None, "lease": "L2"}]
    assert shown.text == table(["#places", "lease"], [[4, "L1"], [None, "L2"]])


def test_what_a_column_says_besides_its_name_is_not_asked_for() -> None:
    shown = chosen(Shown({}, table(["member", "place (rack/host)"], [("a", "r1/h1")])), ["place"])
    assert shown.body == [{"place": "r1/h1"}]


def test_an_empty_listing_stays_empty() -> None:
    assert chosen(Shown({}, "no planned windows"), ["id"]) == Shown([], "")


@pytest.mark.parametrize(
    ("text", "told"),
    [(ONE, "no column 'x'; known are id, "), (stack(), "the output has no columns")],
)
def test_what_there_is_none_of_is_misuse(text: Any, told: str) -> None:
    with pytest.raises(NoColumn, match=told):
        chosen(Shown({}, text), ["x"])


def test_what_is_true_is_said_as_in_json() -> None:
    assert [as_text(one) for one in (True, False, 0, "x")] == ["true", "false", "0", "x"]


PEOPLE = table(["member", "#size"], [("db[10]", 2), ("db[2]", 10), ("app", None)])
BODY = {"members": [{"name": "db[10]"}, {"name": "db[2]"}, {"name": "app"}], "computed_at": "now"}


@pytest.mark.parametrize(
    ("columns", "way", "most", "first"),
    [
        (["member"], "asc", None, ["app", "db[2]", "db[10]"]),
        (["member"], "desc", 2, ["db[10]", "db[2]"]),
        (["size"], "asc", None, ["app", "db[10]", "db[2]"]),
        ([], "asc", 1, ["db[10]"]),
        ([], "asc", 9, ["db[10]", "db[2]", "app"]),
    ],
)
def test_a_listing_and_its_body_are_sorted_and_cut_alike(
    columns: list[str], way: str, most: int | None, first: list[str]
) -> None:
    shown, whole = arranged(
        Shown(BODY, stack(PEOPLE, "", "a hint")), columns, most, descending=way == "desc"
    )
    assert whole
    assert [row[0] for row in next(parts(shown.text)).rows] == first  # type: ignore[union-attr]
    assert shown.body == {"members": [{"name": one} for one in first], "computed_at": "now"}


def test_a_body_with_other_things_than_rows_is_left_alone() -> None:
    shown, whole = arranged(Shown({"hosts": [{}]}, PEOPLE), ["size"], 1, descending=True)
    assert not whole
    assert shown.text == table(["member", "#size"], [("db[2]", 10)])
    with pytest.raises(NoColumn, match="no column 'x'; known are member, size"):
        arranged(Shown({}, PEOPLE), ["x"], None, descending=False)
    empty = Shown({"windows": []}, "no planned windows")
    assert arranged(empty, ["x"], 1, descending=False) == (empty, True)
