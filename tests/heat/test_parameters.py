"""Parameters: where values come from, what they become, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.heat.parameters import read_values
from moorage.heat.typed_yaml import mapping
from moorage.heat.work_limit import MAX_WORK, Work
from moorage.heat.yaml_tree import Plain, parse, to_node


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


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("string", "x", "x"),
        ("string", 8080, "8080"),
        ("string", True, "True"),
        ("number", 3, 3),
        ("number", "3", 3),
        ("number", "3.5", 3.5),
        ("boolean", "yes", True),
        ("boolean", "off", False),
        ("boolean", 1, True),
        ("comma_delimited_list", "a,b, c", ["a", "b", " c"]),
        ("comma_delimited_list", "", []),
        ("comma_delimited_list", ["a", 1], ["a", "1"]),
        ("json", '{"a": [1]}', {"a": [1]}),
        ("json", {"a": [1]}, {"a": [1]}),
        ("json", "", ""),
    ],
)
def test_values_take_the_parameters_type(kind: str, source: Plain, expected: Plain) -> None:
    assert value_of(f"{{type: {kind}}}", source) == expected


@pytest.mark.parametrize(
    ("schema", "source"),
    [
        ("{type: string}", None),
        ("{type: text}", "x"),
        ("{default: x}", None),
        ("{type: string, defalt: x}", "x"),
        ("{type: number}", "many"),
        ("{type: number}", [1]),
        ("{type: boolean}", "maybe"),
        ("{type: json}", "{"),
        ("{type: json}", "[" * 100_000),
        ("{type: comma_delimited_list}", 3),
        ("{type: number, constraints: [{range: {min: 2}}]}", 1),
        ("{type: number, constraints: [{range: {max: 2}}]}", 3),
        ("{type: number, constraints: [{range: {}}]}", 3),
        ("{type: number, constraints: [{range: {min: a}}]}", 3),
        ("{type: string, constraints: [{range: {min: 2}}]}", "x"),
        ("{type: string, constraints: [{length: {max: 2}}]}", "xyz"),
        ("{type: comma_delimited_list, constraints: [{length: {min: 3}}]}", "a,b"),
        ("{type: string, constraints: [{allowed_values: [a, b]}]}", "c"),
        ("{type: comma_delimited_list, constraints: [{allowed_values: [a, b]}]}", "a,c"),
        ("{type: string, constraints: [{allowed_pattern: '[a-z]+'}]}", "ab1"),
        ("{type: string, constraints: [{allowed_pattern: '[a-'}]}", "ab1"),
        ("{type: number, constraints: [{modulo: {step: 2, offset: 1}}]}", 4),
        ("{type: number, constraints: [{modulo: {step: 0, offset: 0}}]}", 4),
        ("{type: number, constraints: [{}]}", 4),
        ("{type: number, constraints: [{range: {min: 1}, modulo: {step: 2, offset: 0}}]}", 4),
        ("{type: number, constraints: [{between: 3}]}", 4),
        ("{type: number, constraints: {range: {min: 1}}}", 4),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(schema: str, source: Plain) -> None:
    with pytest.raises(InvalidDescription) as caught:
        value_of(schema, source)
    assert caught.value.line is not None
    assert caught.value.path


@pytest.mark.parametrize(
    ("schema", "source"),
    [
        ("{type: number, constraints: [{range: {min: 1, max: 3}}]}", 3),
        ("{type: number, constraints: [{allowed_values: [1, '2']}]}", "2"),
        ("{type: boolean, constraints: [{allowed_values: [true]}]}", "yes"),
        ("{type: string, constraints: [{allowed_pattern: '[a-z]+[0-9]*'}]}", "web12"),
        ("{type: json, constraints: [{length: {max: 1}}]}", {"a": 1}),
        ("{type: number, constraints: [{modulo: {step: 2, offset: 1}}]}", 5),
    ],
)
def test_what_fits_passes(schema: str, source: Plain) -> None:
    value_of(schema, source)


def test_defaults_are_judged_as_well() -> None:
    with pytest.raises(InvalidDescription):
        value_of("{type: number, default: 9, constraints: [{range: {max: 3}}]}")


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
