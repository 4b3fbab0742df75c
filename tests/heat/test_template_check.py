"""Checks of templates without values: examples are found, and what needs a value says so."""

import pytest

from moorage.heat.compile import Source
from moorage.heat.template_check import Outcome, check_template

HEAD = "heat_template_version: wallaby\n"
SERVER = "resources: {s: {type: OS::Nova::Server, properties: {flavor: {get_param: p}}}}\n"


@pytest.mark.parametrize(
    ("declared", "example"),
    [
        ("{type: string}", "p"),
        ("{type: string, constraints: [{allowed_values: [m1.a, m1.b]}]}", "m1.a"),
        ("{type: string, constraints: [{length: {min: 6, max: 8}}]}", "example"),
        ("{type: string, constraints: [{length: {min: 20, max: 21}}]}", "p".ljust(20, "a")),
        ("{type: string, constraints: [{allowed_pattern: '[0-9.]+/[0-9]+'}]}", "10.0.0.0/24"),
        ("{type: string, constraints: [{allowed_pattern: '[^@]+@[^@]+'}]}", "a@example.org"),
        ("{type: number, constraints: [{range: {min: 7}}]}", 7),
    ],
)
def test_a_parameter_gets_an_example_that_is_allowed(declared: str, example: object) -> None:
    check = check_template(Source(f"{HEAD}parameters: {{p: {declared}}}\n{SERVER}"))
    assert (check.outcome, check.examples) == (Outcome.COMPILES, {"p": example})


def test_where_a_place_hangs_on_a_value_without_example_it_is_needed() -> None:
    pattern = "{type: string, constraints: [{allowed_pattern: 'm1[.]xlarge'}]}"
    check = check_template(Source(f"{HEAD}parameters: {{p: {pattern}}}\n{SERVER}"))
    assert check.outcome is Outcome.NEEDS_VALUES
    assert check.error is not None
    assert "the parameter p" in check.error.message
    given = Source(f"{HEAD}parameters: {{p: {pattern}}}\n{SERVER}", parameters={"p": "m1.xlarge"})
    assert check_template(given).outcome is Outcome.COMPILES
    elsewhere = SERVER.replace("{get_param: p}", "f, user_data: {get_param: p}")
    other = check_template(Source(f"{HEAD}parameters: {{p: {pattern}}}\n{elsewhere}"))
    assert other.outcome is Outcome.COMPILES


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("resources: {n: {type: OS::Neutron::Net}}", Outcome.NO_SERVERS),
        ("resources: {n: {type: Net}}", Outcome.REFUSED),
        ("resources: [", Outcome.REFUSED),
    ],
)
def test_the_outcome_says_what_a_template_is(text: str, outcome: Outcome) -> None:
    assert check_template(Source(HEAD + text)).outcome is outcome
