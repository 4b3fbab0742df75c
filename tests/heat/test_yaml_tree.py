"""YAML that knows where it stands: bounded, and never anything but a value or one error."""

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.heat.remarks import Remarks
from moorage.heat.yaml_tree import MAX_DEPTH, MAX_NODES, MAX_TEXT, Plain, parse, to_node

TEXT = """\
list:
  - one
  - {two: 2, when: 2026-11-21}
flag: yes
"""

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc_-", min_size=1), inner)
    ),
    max_leaves=20,
)


def test_every_value_knows_its_path_and_line() -> None:
    top = parse(TEXT)
    assert isinstance(top.value, dict)
    listed = top.value["list"].value
    assert isinstance(listed, list)
    inner = listed[1].value
    assert isinstance(inner, dict)
    assert (inner["two"].path, inner["two"].line) == ("list[1].two", 3)
    assert inner["when"].value == "2026-11-21"
    assert (top.value["flag"].value, top.value["flag"].line) == (True, 4)


def test_a_files_name_starts_every_path() -> None:
    with pytest.raises(InvalidDescription) as caught:
        parse("a: {b: 1, b: 2}", name="x.yaml")
    assert caught.value.path == "x.yaml.a"


@given(PLAIN)
def test_it_reads_as_yaml_does(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert parse(text).plain() == yaml.safe_load(text) == value


def test_merge_keys_and_aliases_work() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{x: 9}, *a]}\nd: [*a]\n"
    assert parse(text).plain() == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("", "empty", 1),
        ("a: 1\na: 2", "'a' is written twice", 2),
        ("a: [", "not YAML", None),
        ("a\n---\nb", "more than one document", 3),
        ("a: !ruby/object x", "unsupported tag", 1),
        ("a: !!python/object:os.system x", "unsupported tag", 1),
        ("a: !!binary aGk=", "unsupported tag", 1),
        ("a: !!set {x}", "unsupported tag", 1),
        ("a: !!int many", "not a value", 1),
        ("? [a]\n: b", "a key must be a word", 1),
        ("a: &a 1\n*a : 2", "an alias cannot be a key", 2),
        ("a: &a [*a]", "inside", 1),
        ("a: *b", "b stands inside", 1),
        ("a: {<<: 3}", "<< takes", 1),
        ("a: \x00", "not YAML", 1),
        ("a: \ud800", "not YAML", 1),
        ("%YAML 9.9\n---\na", "not YAML", None),
    ],
)
def test_what_cannot_be_read_says_why_and_where(text: str, said: str, line: int | None) -> None:
    with pytest.raises(InvalidDescription, match=said) as caught:
        parse(text)
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 5_000 + "x",
        "{a: " * (MAX_DEPTH + 1) + "x" + "}" * (MAX_DEPTH + 1),
        "x" * (MAX_TEXT + 1),
        "[" + "x," * (MAX_NODES + 1) + "]",
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 40)),
        "a0: &a0 {k: x}\n" + "".join(f"a{i}: &a{i} {{k: *a{i - 1}}}\n" for i in range(1, 100)),
    ],
    ids=["flow", "block", "maps", "long", "wide", "aliases", "alias depth"],
)
def test_bombs_cost_no_more_than_their_text(text: str) -> None:
    with pytest.raises(InvalidDescription):
        parse(text)


def test_a_made_value_is_bounded_too() -> None:
    with pytest.raises(InvalidDescription):
        to_node([["x"] * 1000] * 300, line=3, path="here")
    deep: Plain = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InvalidDescription, match="deep"):
        to_node(deep, line=3, path="here")


def test_heat_takes_the_last_of_two_values() -> None:
    text = "a: 1\nb: {c: 1, d: 2, c: [3]}\na: 2\n<<: {b: x, e: y}\n"
    remarks = Remarks()
    assert parse(text, name="f", remarks=remarks).plain() == yaml.safe_load(text)
    assert list(remarks) == [
        "f.b (line 2): the key 'c' is written twice; the last value counts, as for Heat",
        "f (line 3): the key 'a' is written twice; the last value counts, as for Heat",
    ]
    with pytest.raises(InvalidDescription, match="written twice"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a" : "\\ud83d\\ude00"}',
        '{"a"\n:\n1}',
        '{\t"a": [1,2]}',
        '{"%s": {"b": null}}' % ("k" * 1100),
    ],
)
def test_heat_reads_any_json(text: str) -> None:
    assert parse(text, remarks=Remarks()).plain() == json.loads(text)


@pytest.mark.parametrize("text", ['{"a": 1', "[" * 100_000, '{"a": "\\ud83d"}', '{"a"\n: 1e999}'])
def test_what_is_no_json_either_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        parse(text, remarks=Remarks())


@given(st.text(max_size=200))
def test_any_text_is_a_value_or_one_error(text: str) -> None:
    with suppress(InvalidDescription):
        parse(text)


@given(st.text("{}[]:,-&*#?|>%@`!\"' \n\tab1~<", max_size=80))
def test_any_yaml_like_text_too(text: str) -> None:
    with suppress(InvalidDescription):
        parse(text)
