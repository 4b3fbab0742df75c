"""Stored values come back exactly as they were."""

import json as json_module
import string
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

from moorage.domain.decisions import Claim, ClaimState, Decision, DecisionState, PolicyStatus, Solve
from moorage.domain.ensembles import Ensemble, Member, Phase, PolicyStatement, Role, Selector
from moorage.domain.explain import (
    Conflict,
    Element,
    EnsembleChange,
    Explanation,
    Fact,
    Relaxation,
    Stage,
)
from moorage.domain.flavors import Flavor
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Place
from moorage.domain.requests import Objective
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.store.values import stored_bodies

Values = st.SearchStrategy[Any]

text = st.text(max_size=6)
words = st.text(string.ascii_letters, min_size=1, max_size=5)
numbers = st.integers(-(2**63), FOREVER)
names = st.frozensets(words, max_size=3)
choices = st.lists(names, max_size=2).map(tuple)
json = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)


def tables(values: Values, keys: Values = text) -> Values:
    return st.dictionaries(keys, values, max_size=3).map(MappingProxyType)


amounts = tables(st.integers(1, 2**31 - 1), words)
periods = st.builds(
    lambda start, length: Period(start, min(start + length, FOREVER)),
    st.integers(0, 2**60),
    st.integers(1, FOREVER),
)
members = st.builds(MemberName, words, st.integers(0, 99))
roles = st.builds(
    Role,
    words,
    amounts,
    flavor=st.none() | text,
    required=choices,
    forbidden=names,
    member_of=choices,
    tags=names,
)
selectors = st.one_of(
    st.builds(Selector, role=words),
    st.builds(Selector, member=members),
    st.builds(Selector, tag=words),
    st.just(Selector(everyone=True)),
)
policies = st.builds(
    PolicyStatement,
    text,
    words,
    st.lists(selectors, max_size=2).map(tuple),
    zip=st.booleans(),
    weight=st.none() | st.integers(1, 99),
    phases=st.frozensets(st.sampled_from(Phase)),
    parameters=tables(json),
)
ensembles = st.builds(
    Ensemble,
    text,
    text,
    text,
    text,
    st.lists(roles, max_size=2).map(tuple),
    st.lists(st.builds(Member, members, text, st.none() | text), max_size=3).map(tuple),
    st.lists(policies, max_size=2).map(tuple),
    tables(text),
    text,
    text,
    numbers,
    numbers,
    numbers,
    st.lists(st.tuples(text, text), max_size=2).map(tuple),
)
decisions = st.builds(
    Decision,
    text,
    text,
    text,
    numbers,
    st.sampled_from(DecisionState),
    periods,
    numbers,
    numbers,
    st.sampled_from(Objective),
    st.builds(Solve, words, numbers, numbers, st.booleans(), st.floats(0, 1e6), numbers),
    tables(st.builds(Place, text, tables(amounts, words)), members),
    st.lists(
        st.builds(PolicyStatus, text, st.booleans(), st.none() | numbers, numbers), max_size=2
    ).map(tuple),
    numbers,
    max_additional=tables(numbers, words),
)
claims = st.builds(
    Claim,
    text,
    text,
    text,
    text,
    members,
    st.sampled_from(ClaimState),
    numbers,
    st.none() | text,
    tables(json),
)
elements = st.builds(Element, words, text)
explanations = st.builds(
    Explanation,
    text,
    words,
    st.sampled_from(Stage),
    numbers,
    numbers,
    st.lists(
        st.builds(
            Conflict,
            st.lists(elements, max_size=2).map(tuple),
            st.lists(text, max_size=2).map(tuple),
            st.lists(st.builds(Fact, text, numbers), max_size=2).map(tuple),
            st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    st.lists(
        st.builds(Relaxation, st.builds(EnsembleChange, words, text, text, json, json), numbers),
        max_size=2,
    ).map(tuple),
    numbers,
    tables(numbers),
)
flavors = st.builds(Flavor, text, text, amounts, choices, names, tables(text))


@given(value=ensembles)
def test_ensembles(value: Ensemble) -> None:
    assert stored_bodies.ENSEMBLE.decode(stored_bodies.ENSEMBLE.encode(value)) == value


@given(value=decisions)
def test_decisions(value: Decision) -> None:
    back = stored_bodies.DECISION.decode(stored_bodies.DECISION.encode(value))
    assert back == value
    assert list(back.places) == list(value.places)


@given(value=claims)
def test_claims(value: Claim) -> None:
    assert stored_bodies.CLAIM.decode(stored_bodies.CLAIM.encode(value)) == value


@given(value=explanations)
def test_explanations(value: Explanation) -> None:
    assert stored_bodies.EXPLANATION.decode(stored_bodies.EXPLANATION.encode(value)) == value


@given(value=flavors)
def test_flavors(value: Flavor) -> None:
    assert stored_bodies.FLAVOR.decode(stored_bodies.FLAVOR.encode(value)) == value


@given(racks=st.lists(words, unique=True, max_size=4), lines=st.none() | st.integers(1, 99))
def test_topologies(racks: list[str], lines: int | None) -> None:
    value = Topology.build(
        {"location": ("zone", "rack"), "power": ("feed",)},
        [
            Domain("z", "zone", line=lines),
            Domain("z", "feed", "power"),
            *(Domain(f"r-{rack}", "rack", parent="z") for rack in racks),
        ],
        [Attachment(f"host-{rack}", f"r-{rack}") for rack in racks]
        + [Attachment(f"host-{rack}", "z", "power") for rack in racks],
    )
    assert stored_bodies.TOPOLOGY.decode(stored_bodies.TOPOLOGY.encode(value)) == value


def test_a_body_written_before_a_field_was_added_takes_its_default() -> None:
    old = stored_bodies.FLAVOR.encode(Flavor("1", "small", {"VCPU": 1}))
    assert '"extra_specs"' in old
    without = old.replace(',"extra_specs":{}', "")
    assert "extra_specs" not in without
    assert stored_bodies.FLAVOR.decode(without) == Flavor("1", "small", {"VCPU": 1})


def test_bodies_written_before_are_read_as_the_same_values() -> None:
    """Each line has a kind, what revision 0013 of the schema wrote, and the same value today."""
    kinds = set()
    for line in Path(__file__).with_name("bodies_0013.jsonl").read_text().splitlines():
        kind, before, now = json_module.loads(line)
        body = getattr(stored_bodies, kind)
        value = body.decode(json_module.dumps(before))
        assert value == body.decode(json_module.dumps(now)), kind
        assert body.decode(body.encode(value)) == value, kind
        kinds.add(kind)
    stored = {name for name in vars(stored_bodies) if name.isupper() and not name.startswith("_")}
    newer = {"ACTOR", "DEAD_LETTER", "DECISION_RECORD", "OPERATOR_CLOSING", "SERVICE_REPORT"}
    assert kinds == stored - newer - {"PLAN", "T", "UNKNOWN", "VIOLATION"}


def test_what_is_no_body_is_refused() -> None:
    for text in ('{"id": 1}', '{"name": "small"}', "[]", "null"):
        with pytest.raises(ValidationError):
            stored_bodies.FLAVOR.decode(text)


def test_a_field_of_several_types_is_read_as_it_stands() -> None:
    stored = {
        "id": "t",
        "version": 1,
        "project_id": "p",
        "user_id": "u",
        "name": "n",
        "format": "hot",
        "source": {},
        "digest": None,
        "parameters": [{"name": "web", "type": "number", "least": 1, "most": 2.5}],
    }
    (parameter,) = stored_bodies.TEMPLATE.decode(json_module.dumps(stored)).parameters
    assert (parameter.least, parameter.most) == (1, 2.5)
