"""Versions, the header's grammar, and changes that lift, lower and replace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.http.microversion import (
    Change,
    History,
    InvalidVersion,
    Response,
    UnacceptableVersion,
    Version,
    requested_version,
)

versions = st.builds(Version, st.integers(0, 9), st.integers(0, 99))


def renamed(old: str, new: str) -> Change:
    """A step that renamed a field of `thing`, on the way in and out."""

    def swap(body: dict[str, object], before: str, after: str) -> dict[str, object]:
        return {after if key == before else key: value for key, value in body.items()}

    return Change(
        since="1.2",
        feature="new-name",
        schemas={"thing": lambda schema: swap(schema, new, old)},
        lift={"thing": lambda body: swap(body, old, new)},
        lower={"thing": lambda answer: Response(answer.status, swap(answer.body, new, old))},
    )


HISTORY = History(
    [
        renamed("colour", "color"),
        Change(since="1.0", feature="first"),
        Change(since="1.1", feature="other", routes={"other": 405}),
        Change(since="1.10", feature="body", instead={"thing": lambda *_: Response(204)}),
    ]
)


def speaking(text: str) -> object:
    return HISTORY.negotiated(f"thing {text}", "thing")


@given(versions, versions)
def test_versions_are_ordered_by_number_and_read_back(one: Version, other: Version) -> None:
    assert Version.parse(str(one)) == one
    assert (one < other) == ((one.major, one.minor) < (other.major, other.minor))


@pytest.mark.parametrize(
    "text", ["1", "1.", ".1", "1.2.3", "a.b", "1.2x", "1.0.", "", "1,0", "1 .0.1"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(InvalidVersion):
        Version.parse(text)


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        (None, None),
        ("", None),
        ("compute 2.1", None),
        ("thing 1.1", "1.1"),
        ("THING latest", "latest"),
        ("thing LATEST", "LATEST"),
        ("thing", None),
        ("thing 1.1, thing 1.2 ,thing", "1.2"),
        ("compute 2.1,thing 1.10", "1.10"),
        ("things 1.1", None),
    ],
)
def test_the_header_names_services(header: str | None, asked: str | None) -> None:
    assert requested_version(header, "thing") == asked


def test_a_version_between_declared_ones_does_not_exist() -> None:
    with pytest.raises(UnacceptableVersion) as caught:
        speaking("1.5")
    assert (str(caught.value.minimum), str(caught.value.maximum)) == ("1.0", "1.10")


def test_features_are_asked_for_by_name() -> None:
    old, new = HISTORY.at(Version(1, 1)), HISTORY.at(Version(1, 10))
    assert (old.has("other"), old.has("new-name"), new.has("new-name")) == (True, False, True)
    with pytest.raises(AssertionError, match="no change declares"):
        old.has("nonsense")


def test_bodies_are_lifted_and_answers_lowered_only_where_needed() -> None:
    old, new = HISTORY.at(Version(1, 0)), HISTORY.at(Version(1, 2))
    assert old.lifted("thing", {"colour": 1}) == {"color": 1}
    assert old.lowered("thing", Response(200, {"color": 1})).body == {"colour": 1}
    assert old.schema("thing", {"color": {}}) == {"colour": {}}
    assert new.lifted("thing", {"color": 1}) == {"color": 1}
    assert (old.lowers("thing"), new.lowers("thing"), old.lowers("other")) == (True, False, False)


def test_routes_and_handlers_of_older_versions() -> None:
    def newest(*_: object) -> Response:
        return Response(200)

    first, last = HISTORY.at(Version(1, 0)), HISTORY.at(Version(1, 10))
    assert (first.absent("other"), last.absent("other"), first.absent("thing")) == (405, None, None)
    assert first.handler("thing", newest)().status == 204
    assert last.handler("thing", newest)().status == 200


def test_a_history_has_one_change_per_version() -> None:
    with pytest.raises(ValueError, match="exactly one change"):
        History([Change(since="1.0", feature="a"), Change(since="1.0", feature="b")])
    with pytest.raises(ValueError, match="exactly one change"):
        History([])
