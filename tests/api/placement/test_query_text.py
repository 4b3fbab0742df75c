"""Queries read by short ways say what they say when read the long way."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.placement import candidate_query
from moorage.api.placement.application import parse_query_string
from moorage.api.placement.refusals import BadQuery
from moorage.api.placement.request import Request
from moorage.api.placement.versions import HISTORY
from moorage.engine.candidates.query import CandidateQuery

A_TREE = "00000001-0000-4000-8000-00000000000a"
OTHER_TREE = "00000001-0000-4000-8000-00000000000b"


def asked(text: str, version: str = "1.39") -> Request:
    return Request(
        operation="candidates.list",
        negotiated=HISTORY.negotiated(f"placement {version}", "placement"),
        path={},
        query=parse_query_string(text),
        raw=b"",
        mount="",
    )


def read(text: str, version: str = "1.39") -> CandidateQuery:
    return candidate_query.read(asked(text, version))


@given(st.text("ab1_=&;%2+é", max_size=12))
def test_a_query_is_taken_apart_as_the_standard_library_does(text: str) -> None:
    try:
        parted = text.replace(";", "&")  # as the reference does
        expected = parse_qsl(parted, keep_blank_values=True, encoding="utf-8", errors="strict")
    except ValueError:
        with pytest.raises(ValueError, match=r"decode|codec"):
            parse_query_string(text)
        return
    assert parse_query_string(text) == tuple(expected)


def test_queries_that_differ_by_their_trees_alone_keep_these() -> None:
    for tree in (A_TREE, OTHER_TREE):
        found = read(
            f"resources=VCPU:1&in_tree={tree}&resources1=DISK_GB:2&resources_X=MEMORY_MB:3"
            f"&in_tree_X=%20{A_TREE}%20&group_policy=none"
        )
        assert {one.suffix: one.in_tree for one in found.groups} == {
            "": tree,
            "1": None,
            "_X": A_TREE,
        }
        assert [want.suffix for want in found.shape.slots] == ["", "1", "_X"]


def test_of_a_tree_named_twice_the_last_counts() -> None:
    found = read(f"resources=VCPU:1&in_tree=nonsense&in_tree={A_TREE}")
    assert found.groups[0].in_tree == A_TREE


@pytest.mark.parametrize("tree", ["nonsense", "", f"{A_TREE}x"])
def test_a_tree_that_is_none_is_quoted(tree: str) -> None:
    with pytest.raises(BadQuery) as caught:
        read(f"resources=VCPU:1&in_tree={tree}&resources1=VCPU:1&in_tree1={A_TREE}")
    assert f"Got: {tree}" in str(caught.value)


def test_a_tree_alone_asks_for_nothing() -> None:
    with pytest.raises(BadQuery, match="must be at least one resources"):
        read(f"in_tree={A_TREE}")


def test_a_suffix_that_a_version_does_not_know_makes_no_group() -> None:
    found = read(f"resources=VCPU:1&in_tree_X={A_TREE}", version="1.31")
    assert [(one.suffix, one.in_tree) for one in found.groups] == [("", None)]
