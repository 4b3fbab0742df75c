"""Parameters: where values come from, what they become, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.heat.parameter_values import REFUSED, VALUES

from moorage.domain.errors import InvalidDescription
from moorage.heat.deferred_values import (
    DeferredValue,
    NotKnownYet,
    find_deferred,
    refuse_deferred,
)
from moorage.heat.parameters import pseudo_parameters, read_values
from moorage.heat.typed_yaml import mapping
from moorage.heat.versions import VERSIONS, Version, version_of
from moorage.heat.work_limit import MAX_WORK, Work
from moorage.heat.yaml_tree import Plain, collection_node, parse, to_node

HOT = VERSIONS["wallaby"]
AWS = version_of(parse("AWSTemplateFormatVersion: '2010-09-09'"))


def value_of(schema: str, given_value: Plain = None, default: Plain = None) -> Plain:
    declared = mapping(parse("p: " + schema))
    values = read_values(
        declared,
        {} if given_value is None else {"p": to_node(given_value, line=9, path="given.p")},
        {} if default is None else {"p": to_node(default, line=8, path="default.p")},
        Work(),
    )
    return values.by_name["p"].plain()


def notes_of(schema: str) -> tuple[str, ...]:
    return read_values(mapping(parse("p: " + schema)), {}, {}, Work()).notes


def test_the_first_source_wins() -> None:
    schema = "{type: string, default: from template}"
    assert value_of(schema, "from caller", "from defaults") == "from caller"
    assert value_of(schema, None, "from defaults") == "from defaults"
    assert value_of(schema) == "from template"


@pytest.mark.parametrize(("schema", "source", "expected"), VALUES)
def test_a_value_is_what_heat_makes_of_it(schema: str, source: Plain, expected: object) -> None:
    if expected is REFUSED:
        with pytest.raises(InvalidDescription) as caught:
            value_of(schema, source)
        assert caught.value.line is not None
        assert caught.value.path
    else:
        found = value_of(schema, source)
        assert (found, type(found)) == (expected, type(expected))


def test_json_too_deep_to_read_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="must be JSON"):
        value_of("{type: json}", "[" * 100_000)


def test_of_several_constraints_in_one_entry_the_first_is_applied_and_noted() -> None:
    (note,) = notes_of(
        "{type: string, default: ab, constraints: [{length: {max: 2}, allowed_pattern: x}]}"
    )
    assert "only length" in note
    assert "p.constraints[0] (line 1)" in note


def test_what_may_lack_a_value_is_known_later() -> None:
    declared = mapping(parse("{p: {type: number}, q: {type: string, default: x}}"))
    found = read_values(declared, {}, {}, Work(), may_lack=True).by_name
    assert found["q"].value == "x"
    with pytest.raises(NotKnownYet, match="the parameter p, which has no default, is not known"):
        refuse_deferred(found["p"])


def test_a_list_known_in_part_is_text_for_the_rest() -> None:
    address = to_node(DeferredValue("an address"), line=3, path="given.p[1]")
    given_list = collection_node([to_node(1, line=3, path="given.p[0]"), address], 3, "given.p")
    declared = mapping(parse("p: {type: comma_delimited_list}"))
    found = read_values(declared, {"p": given_list}, {}, Work()).by_name["p"]
    assert found.plain() == ["1", "an address"]


@pytest.mark.parametrize(
    ("name", "version", "known", "later"),
    [
        ("shop", HOT, {"OS::stack_name": "shop"}, {"OS::stack_id", "OS::project_id", "OS::region"}),
        (
            None,
            HOT,
            {},
            {"OS::stack_name", "OS::stack_id", "OS::project_id", "OS::region"},
        ),
        (
            "shop",
            AWS,
            {"AWS::StackName": "shop", "AWS::Region": "ap-southeast-1"},
            {"AWS::StackId"},
        ),
    ],
)
def test_pseudo_parameters(
    name: str | None, version: Version, known: dict[str, str], later: set[str]
) -> None:
    found = pseudo_parameters(name, "file", version)
    deferred = {key for key, node in found.items() if find_deferred(node) is not None}
    assert deferred == later
    assert {key: found[key].value for key in found if key not in later} == known


def test_an_undeclared_parameter_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="no parameter 'q'"):
        read_values({}, {"q": to_node(1, line=1, path="given.q")}, {}, Work())


def test_an_undeclared_default_is_none_of_our_business() -> None:
    found = read_values({}, {}, {"q": to_node(1, line=1, path="default.q")}, Work())
    assert found.by_name == {}


def test_what_is_not_judged_is_noted() -> None:
    (note,) = notes_of(
        "{type: string, default: m1, constraints: [{custom_constraint: nova.flavor}]}"
    )
    assert "nova.flavor" in note


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a)\\\\1", "back reference"),
        ("(?=a)a", "(?=a"),
        ("(?<!a)a", "(?<!"),
        ("a" * 600, "longer than"),
        ("(a*)*", "may be empty"),
    ],
)
def test_a_pattern_that_is_not_matched_is_noted_with_its_place(pattern: str, why: str) -> None:
    schema = f'{{type: string, default: aa!, constraints: [{{allowed_pattern: "{pattern}"}}]}}'
    (note,) = notes_of(schema)
    assert note.startswith("p.constraints[0].allowed_pattern (line 1): the pattern was not matched")
    assert why in note


@pytest.mark.parametrize("pattern", ["(a|.)" * 60 + "b", "(a|aa)+b", "(a|a)+b", "((a|b)+c?)+d"])
def test_a_pattern_of_exponentially_many_paths_ends(pattern: str) -> None:
    schema = f'{{type: string, constraints: [{{allowed_pattern: "{pattern}"}}]}}'
    with pytest.raises(InvalidDescription, match="does not match"):
        value_of(schema, "a" * 200)


def test_patterns_are_paid_for_in_values() -> None:
    schema = "{type: string, constraints: [{allowed_pattern: '((a|b)(a|.)){1,400}'}]}"
    declared = {f"p{i}": mapping(parse("p: " + schema))["p"] for i in range(100)}
    given_values = {name: to_node("ab" * 400, line=1, path=f"given.{name}") for name in declared}
    one = Work()
    read_values({"p0": declared["p0"]}, {"p0": given_values["p0"]}, {}, one)
    assert MAX_WORK / 100 < one.done < MAX_WORK / 2
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        read_values(declared, given_values, {}, Work())


@given(st.text("()[]{}?*+|\\^$.ab01,-", max_size=30), st.text("ab01", max_size=256))
def test_any_pattern_is_matched_noted_or_refused(pattern: str, text: str) -> None:
    constraint: Plain = [{"allowed_pattern": pattern}]
    declared = {
        "p": to_node({"type": "string", "constraints": constraint}, line=1, path="parameters.p")
    }
    try:
        read_values(declared, {"p": to_node(text, line=2, path="given.p")}, {}, Work())
    except InvalidDescription as error:
        assert error.line == 1  # noqa: PT017 - either outcome is right, each in its form
