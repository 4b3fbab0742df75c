"""The five functions, and what the others get."""

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.heat.deferred_values import DeferredValue, ResourceReference, find_deferred
from moorage.heat.functions import Scope, resolve
from moorage.heat.paths import ROOT
from moorage.heat.typed_yaml import mapping
from moorage.heat.versions import VERSIONS
from moorage.heat.yaml_tree import YamlNode, parse

PARAMETERS = """
name: shop
size: 3
none: null
port: 80.5
on: true
zones: [az1, az2]
flavors: {web: m1.small, db: {big: m1.xlarge}}
"""


def value(text: str, version: str = "wallaby") -> YamlNode:
    scope = Scope(
        stack=ROOT / "nested",
        version=VERSIONS[version],
        parameters=mapping(parse(PARAMETERS)),
        resources={"web": parse("type: OS::Nova::Server")},
    )
    return resolve(parse(text), scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{get_param: name}", "shop"),
        ("{get_param: [name]}", "shop"),
        ("{get_param: flavors}", {"web": "m1.small", "db": {"big": "m1.xlarge"}}),
        ("{get_param: [flavors, db, big]}", "m1.xlarge"),
        ("{get_param: [zones, 1]}", "az2"),
        ("{get_param: [zones, '0']}", "az1"),
        ("{get_param: [zones, -1]}", "az2"),
        ("{get_param: [flavors, {get_param: [inner, 0]}]}", None),
        ("{str_replace: {template: 'a-N-b', params: {N: {get_param: name}}}}", "a-shop-b"),
        ("{str_replace: {template: 'aab ab', params: {a: b, ab: x}}}", "bx x"),
        (
            "{str_replace: {template: 'n s t f', params: {n: null, s: 3, t: true, f: 1.0}}}",
            " 3 True 1.0",
        ),
        ("{str_replace: {template: z, params: {z: {get_param: zones}}}}", '["az1", "az2"]'),
        ("{list_join: ['-', [a, b]]}", "a-b"),
        ("{list_join: [', ', {get_param: zones}, [c], null]}", "az1, az2, c"),
        ("{list_join: ['-', [a, null, {b: 1}]]}", 'a--{"b": 1}'),
        ("{list_join: ['', []]}", ""),
        ("{a: {get_param: name}, b: [1, {get_param: size}]}", {"a": "shop", "b": [1, 3]}),
        ("{repeat_: x}", {"repeat_": "x"}),
        ("{get_param: name, other: x}", {"get_param": "name", "other": "x"}),
    ],
)
def test_functions_yield_what_heat_yields(text: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(InvalidDescription):
            value(text)
    else:
        assert value(text).plain() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: {get_param: nmae}", "no parameter 'nmae'"),
        ("x: {get_param: [flavors, app]}", "nothing at 'app'"),
        ("x: {get_param: [zones, 2]}", "nothing at '2'"),
        ("x: {get_param: [name, 0]}", "nothing at '0'"),
        ("x: {get_param: []}", "a name is needed"),
        ("x: {get_param: {a: b}}", "text is needed"),
        ("x: {get_param: [flavors, {get_resource: web}]}", "not known yet"),
        ("x: {get_resource: db}", "no resource 'db'"),
        ("x: {get_attr: [db, name]}", "no resource 'db'"),
        ("x: {str_replace: {template: a}}", "'params' is missing"),
        ("x: {str_replace: {template: a, params: [b]}}", "a mapping is needed"),
        ("x: {str_replace: {template: [a], params: {}}}", "text is needed"),
        ("x: {str_replace: {template: a, params: {'': b}}}", "an empty key"),
        ("x: {list_join: [a]}", "at least 2"),
        ("x: {list_join: ['-', text]}", "a list is needed"),
        ("x: {list_join: ['-', [1]]}", "quote it"),
        ("x: {list_join: [3, [a]]}", "text is needed"),
        ("x: {list_join: text}", "a list is needed"),
    ],
)
def test_a_wrong_call_names_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said) as caught:
        value("\n\n" + text)
    assert caught.value.line == 3
    assert (caught.value.path or "").startswith("x.")


@pytest.mark.parametrize(
    "name",
    sorted(
        VERSIONS["wallaby"].functions
        - {"get_param", "get_resource", "get_attr", "get_file", "if", "str_replace", "list_join"}
    ),
)
def test_every_other_function_is_an_error_never_data(name: str) -> None:
    with pytest.raises(InvalidDescription, match="is not supported") as caught:
        value(f'a:\n  b: [{{"{name}": [x]}}]')
    assert (caught.value.path, caught.value.line) == (f"a.b[0].{name}", 2)


def test_what_an_old_version_does_not_know_is_data() -> None:
    assert value("{if: [a, b, c]}", "2015-04-30").plain() == {"if": ["a", "b", "c"]}


@pytest.mark.parametrize(
    "text",
    [
        "{list_join: ['-', [a], [b]]}",
        "{list_join: ['-', [[a]]]}",
        "{str_replace: {template: z, params: {z: [a]}}}",
    ],
)
def test_json_in_text_came_later(text: str) -> None:
    value(text, "2015-10-15")
    with pytest.raises(InvalidDescription, match="2015-04-30"):
        value(text, "2015-04-30")


def test_ids_and_attributes_are_known_later() -> None:
    reference = value("{get_resource: web}").value
    assert isinstance(reference, ResourceReference)
    assert str(reference.target) == "nested/web"
    for text in (
        "{get_attr: [web, first_address]}",
        "{str_replace: {template: a-X, params: {X: {get_attr: [web, name]}}}}",
        "{list_join: ['-', [{get_resource: web}]]}",
        "{list_join: ['-', {get_attr: [web, addresses]}]}",
    ):
        assert isinstance(value(text).value, DeferredValue), text
    assert find_deferred(value("[1, {a: {get_resource: web}}]")) is not None
    assert find_deferred(value("[1, {a: b}]")) is None


@pytest.mark.parametrize(
    "text",
    [
        f"{{str_replace: {{template: {'a' * 300_000}, params: {{a: b}}}}}}",
        f"{{str_replace: {{template: {'a' * 50_000}, params: {{a: {'b' * 1_000}}}}}}}",
        "l: &l [" + ",".join(["x" * 1000] * 100) + "]\n"
        f"x: {{list_join: ['', {', '.join(['*l'] * 100)}]}}",
    ],
)
def test_text_cannot_grow_without_bound(text: str) -> None:
    with pytest.raises(InvalidDescription, match=r"longer than|too often"):
        value(text)
