"""Expressions of yaql: bounded in time and memory, and deferred where they cannot be worked out."""

import sys
import tracemalloc
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.heat import yaql_engine
from moorage.heat.compile import Source, compile_template
from moorage.heat.work_limit import MAX_WORK, Work
from moorage.heat.yaml_tree import Plain, parse
from moorage.heat.yaql_engine import MAX_EXPRESSION, YaqlError, evaluate

TEMPLATE = """\
heat_template_version: wallaby
resources:
  web:
    type: OS::Nova::Server
    properties:
      flavor: {FLAVOR}
      metadata: {METADATA}
"""
SIZE = "{yaql: {expression: '$.data.first()', data: [m1.small]}}"


def value_of(expression: str, data: Plain = None, *, done: int = 0) -> tuple[Plain, int]:
    """The value, and the work that is done then."""
    work = Work(done)
    node = parse("here")
    return evaluate(expression, data, lambda amount: work.spend(amount, node)), work.done


DOUBLED = "let(x => [1]) -> " + "let(x => [$x, $x]) -> " * 60


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ("range(10000000000)", None),
        ("range(10000000000).where(false)", None),
        ("sequence().last()", None),
        ("'a' * 1000000000", None),
        ("[1] * 1000000000", None),
        ("1000000000 * [1]", None),
        ("pow(2, 10000000000)", None),
        ("shiftBitsLeft(1, 10000000000)", None),
        ("call(pow, [2, 10000000000], {})", None),
        ("round(5, -1000000000)", None),
        ("$.data.replace(a, $.data)", "a" * 8_000),
        ("$.data.replace({a => $.data})", "a" * 8_000),
        ("$.data.replace('', $.data)", "a" * 8_000),
        ("def(f, f()) -> f()", None),
        (DOUBLED + "$x", None),
        (DOUBLED + "str($x)", None),
        (DOUBLED + "[$x].distinct()", None),
        (DOUBLED + "$x = $x", None),
        ("range(200).select(range(200).select(range(200)))", None),
        ("regex('(?=a)').matches(a)", None),
        ("regex('.').replace($.data, $.data)", "a" * 4_000),
        ("regex('.*b|.').searchAll($.data).len() + regex($.data).search(a)", "a" * 4_000),
        ("regex(a).replace(a, '\\g<1>')", None),
        ("regex(a)", None),
        ("generate(1, true, $ * 1000000007).last()", None),
        ("now()", None),
        ("random()", None),
        ("-" * (MAX_EXPRESSION - 1) + "1", None),
        ("1" * (MAX_EXPRESSION - 1) + "a", None),
        ("1" * (MAX_EXPRESSION + 1), None),
        ("'\\N{BOX DRAWINGS LIGHT}' + '\\ud800'", None),
        ("1 / 0.0 * 0", None),
        ("{1 => {$ => 2}}", None),
        ("lambda($)", None),
        ("$.__class__", None),
        ("$.data.format", "x"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_hostile_expression_ends_with_one_error(expression: str, data: Plain) -> None:
    yaql_engine.is_available()
    tracemalloc.start()
    try:
        with pytest.raises((YaqlError, InvalidDescription)):
            value_of(expression, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


@pytest.mark.parametrize(
    "expression",
    [
        "sequence(0).len()",
        "sequence(0, 0).len()",
        "range(1000000000).len()",
        "range(1000000000, 0, -1).len()",
        "[1].cycle().len()",
        "1.repeat().len()",
        "1.repeat(1000000000).len()",
        "1.repeat().repeat().flatten().len()",
        "generate(0, true, 1).len()",
        "generate([1], true, $.select($)).len()",
        "[1].select(1.repeat().len())",
        "let(x => sequence(0)) -> $x.len()",
        "def(f, sequence(0)) -> f().len()",
        "call(len, [1.repeat()], {})",
        "switch(true => [1].cycle().len())",
    ],
)
@pytest.mark.parametrize("limit", ["work", "time"])
def test_an_iterator_without_an_end_is_ended_by_either_limit(expression: str, limit: str) -> None:
    if limit == "work":
        with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
            value_of(expression, done=MAX_WORK - 100_000)
        return
    ticks = count(step=0.001)  # each look at the clock takes a millisecond
    with deadline.within(lambda: next(ticks), 1.0), pytest.raises(deadline.TimeExpired):
        value_of(expression)


def test_an_iterator_that_remembers_yields_the_same_again() -> None:
    expression = "let(x => [1, 2].select($ * 2).memorize()) -> [$x.toList(), $x.toList()]"
    assert value_of(expression)[0] == [[2, 4], [2, 4]]


REGEX = 'int(regex("^pool-([0-9]+)$").replace($.data, "\\g<1>"))'
NAMED = "regex('(?P<n>b)').replace($.data, '[\\g<n>]')"


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        (REGEX, "pool-3", 3),
        (NAMED, "abcb", "a[b]c[b]"),
        ("regex(b).replace($.data, x, count => 1)", "abcb", "axcb"),
        ("$.data.replace(regex('B', ignoreCase => true), '')", "abcb", "ac"),
        ("regex('b').replaceBy($.data, $1.value + $1.value)", "abc", "abbc"),
        ("$.data.split(regex('([0-9])'))", "a1b2c", ["a", "1", "b", "2", "c"]),
        ("regex(',').split($.data, maxSplit => 1)", "a,b,c", ["a", "b,c"]),
        ("regex('[0-9]+').searchAll($.data)", "a1b22", ["1", "22"]),
        ("regex('b(.)').search($.data, $2.value)", "abc", "c"),
        ("regex('b(.)').search($.data, $.start)", "abc", 1),
        ("regex(x).search($.data)", "abc", None),
        ("$.data =~ '^a' and $.data !~ '^b'", "abc", True),
        ("$.data =~ regex(c) and $.data.matches('b.')", "abc", True),
        ("[isRegex(regex(a)), isRegex(a)]", None, [True, False]),
        ("regex('(a+)+$').matches($.data)", "a" * 100 + "b", False),
        ("[1, 2].replace(0, 5)", None, [5, 2]),
    ],
)
def test_regular_expressions_and_replacements_as_in_heat(
    expression: str, data: Plain, value: Plain
) -> None:
    assert value_of(expression, data)[0] == value


def test_nested_loops_cost_what_they_take() -> None:
    levels = "1"
    for _ in range(6):
        levels = f"range(150).select({levels}).sum()"
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        value_of(levels, done=MAX_WORK - 100_000)


@given(st.text("$.data[](){}, =>'\"+-*/ab01xmaplentselwhr", max_size=60))
def test_any_text_is_a_value_or_an_error(expression: str) -> None:
    try:
        value_of(expression, {"a": [1, 2]})
    except YaqlError as error:
        assert str(error)  # noqa: PT017 - either outcome is right, each in its form


def test_an_expression_may_decide_a_flavor() -> None:
    compiled = compile_template(Source(TEMPLATE.replace("{FLAVOR}", SIZE).replace("METADATA", "")))
    assert [role.flavor for role in compiled.description.roles] == ["m1.small"]


@pytest.fixture
def without_the_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yaql_engine._library.cache_clear()
    monkeypatch.setitem(sys.modules, "yaql", None)
    yield
    yaql_engine._library.cache_clear()


@pytest.mark.usefixtures("without_the_library")
def test_without_the_extra_it_is_refused_only_where_it_decides() -> None:
    elsewhere = TEMPLATE.replace("{FLAVOR}", "f").replace("{METADATA}", f"{{a: {SIZE}}}")
    compiled = compile_template(Source(elsewhere))
    assert any("the extra yaql is not installed" in note for note in compiled.notes)
    with pytest.raises(InvalidDescription, match="the extra yaql is not installed") as caught:
        compile_template(Source(TEMPLATE.replace("{FLAVOR}", SIZE).replace("METADATA", "")))
    assert caught.value.path == "resources.web.properties.flavor.yaql.expression"
