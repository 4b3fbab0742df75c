"""Every body survives the wire, and what is written is what is read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.native.routes import ROUTES
from moorage.domain.describe import read_statement
from moorage.usecases.ensembles.policies import merged_statement, written_statement
from moorage.wire import decisions as decisions_wire
from moorage.wire import ensembles as ensembles_wire

names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
groups = st.lists(names | st.lists(names, min_size=1, max_size=3), max_size=3)
amounts = st.dictionaries(names, st.integers(1, 2**31 - 1), min_size=1, max_size=3)
roles = st.builds(
    ensembles_wire.RoleBody,
    name=names,
    kind=st.just("server"),
    count=st.integers(0, 5000),
    resources=amounts,
    required=groups,
    forbidden=st.lists(names, max_size=3),
    member_of=groups,
    tags=st.lists(names, max_size=3),
)
decides = st.builds(
    decisions_wire.DecideBody,
    hold=st.sampled_from([None, "PT10M", "10m"]),
    objective=st.sampled_from(["spread", "pack", "balance", "room"]),
    seed=st.integers(0, 2**31 - 1),
    max_additional=st.lists(names, max_size=3),
    until=st.sampled_from([None, "2026-12-07T08:00:00Z"]),
    preemptible=st.booleans(),
)
ensembles = st.builds(
    ensembles_wire.EnsembleCreate,
    st.builds(
        ensembles_wire.EnsembleBody,
        name=names,
        metadata=st.dictionaries(names, st.text(max_size=20), max_size=3),
        members=st.lists(roles, max_size=3),
        decide=st.none() | decides,
    ),
)


@given(ensembles)
def test_a_request_comes_back_from_json_as_it_was(body: ensembles_wire.EnsembleCreate) -> None:
    wire = msgspec.json.encode(body)
    assert msgspec.json.decode(wire, type=ensembles_wire.EnsembleCreate) == body


parameters = st.dictionaries(
    names.filter(lambda n: n not in {"name", "type", "members", "zip", "strength", "phase"}),
    st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=2),
    max_size=3,
)
selectors = st.sampled_from(["db", "db[1]", "*", "tag:x"])
statements = st.builds(
    lambda name, kind, selected, strength, phase, rest: {
        "name": name,
        "type": kind,
        **selected,
        "strength": strength,
        **phase,
        **rest,
    },
    names,
    names,
    st.fixed_dictionaries({"members": st.lists(selectors, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"zip": st.lists(selectors, min_size=2, max_size=3, unique=True)}),
    st.sampled_from(["required", "preferred", {"preferred": 7}]),
    st.sampled_from([{}, {"phase": ["create"]}, {"phase": ["steady", "create"]}]),
    parameters,
)


@given(statements)
def test_a_policy_is_written_as_it_is_read(source: dict[str, Any]) -> None:
    statement = read_statement(source, "p")
    assert read_statement(written_statement(statement), "p") == statement
    assert merged_statement(statement, {"name": statement.name}, "p") == statement


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method}{one.path}")
def test_answers_have_types_that_msgspec_can_describe(route: Any) -> None:
    for kind in (route.request, route.response):
        if kind is not None:
            assert kind.__doc__
            assert msgspec.json.schema(kind)["$defs"][kind.__name__]["description"]
