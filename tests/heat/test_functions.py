"""Every function of every version: values as Heat's, what is known later, and what is refused."""

from contextlib import suppress
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.heat.function_values import CONDITIONS, PARAMETERS, REFUSED, TRUTHS, VALUES

from moorage.domain.errors import InvalidDescription
from moorage.heat.deferred_values import (
    DeferredValue,
    NotKnownYet,
    ResourceReference,
    find_deferred,
    refuse_deferred,
)
from moorage.heat.functions import conditions_of, resolve
from moorage.heat.paths import ROOT
from moorage.heat.scope import Scope
from moorage.heat.typed_yaml import mapping
from moorage.heat.versions import VERSIONS, Version, version_of
from moorage.heat.yaml_tree import Plain, YamlNode, parse, to_node

CALLS = [(version, *case) for version, cases in VALUES.items() for case in cases]
AWS = version_of(parse("AWSTemplateFormatVersion: '2010-09-09'"))


def scope(version: str = "wallaby") -> Scope:
    return Scope(
        stack=ROOT / "nested",
        version=VERSIONS[version],
        parameters=mapping(parse(PARAMETERS)),
        resources={"web": parse("type: OS::Nova::Server")},
        conditions=mapping(parse(CONDITIONS)),
    )


def value(text: str, version: str = "wallaby") -> YamlNode:
    return resolve(parse(text), scope(version))


def known(text: str, version: str = "wallaby") -> object:
    found = value(text, version)
    refuse_deferred(found)
    return found.plain()


@pytest.mark.parametrize(("version", "text", "expected"), CALLS)
def test_a_function_yields_what_heat_yields(version: str, text: str, expected: object) -> None:
    if expected is REFUSED:
        with pytest.raises(InvalidDescription):
            known(text, version)
    else:
        found = known(text, version)
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(("text", "expected"), TRUTHS)
def test_a_condition_holds_where_heats_does(text: str, expected: object) -> None:
    conditions = conditions_of(scope())
    conditions.check()
    if expected is REFUSED:
        with pytest.raises(InvalidDescription):
            conditions.holds(parse(text))
    else:
        assert conditions.holds(parse(text)) is expected


def test_every_function_of_every_version_is_tried() -> None:
    tried = {
        (version, name)
        for version, text, _ in CALLS
        for name in VERSIONS[version].functions
        if name in text
    }
    later = {"get_resource", "get_attr", "get_file", "resource_facade", "Fn::GetAZs"}
    newest = {name for version, name in tried if version == "wallaby"}
    assert newest | later | {"yaql", "Fn::ResourceFacade"} >= VERSIONS["wallaby"].functions
    oldest = {name for version, name in tried if version == "2013-05-23"}
    assert oldest | later | {"get_param", "Fn::ResourceFacade"} >= VERSIONS["2013-05-23"].functions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: {get_param: nmae}", "no parameter 'nmae'"),
        ("x: {get_param: []}", "a name is needed"),
        ("x: {get_param: {a: b}}", "text is needed"),
        ("x: {get_param: [flavors, {get_resource: web}]}", "the id of nested/web is not known"),
        ("x: {get_resource: db}", "no resource 'db'"),
        ("x: {get_attr: [db, name]}", "no resource 'db'"),
        ("x: {get_file: a.txt}", "a.txt is missing"),
        ("x: {str_replace: {template: a}}", "'params' is missing"),
        ("x: {str_replace_strict: {template: a, params: {bc: x, b: y}}}", "not in the text: bc, b"),
        ("x: {list_join: ['-', [1]]}", "quote it"),
        ("x: {repeat: {template: '%i%', for_each: {'%i%': [1]}}}", "quote it"),
        ("x: {resource_facade: name}", "no 'name' to give"),
        ("x: {Ref: web}", "no function Ref any more"),
    ],
)
def test_a_wrong_call_names_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said) as caught:
        known("\n\n" + text)
    assert caught.value.line == 3
    assert (caught.value.path or "").startswith("x.")


def test_what_has_no_value_is_refused_only_where_it_is_needed() -> None:
    around = scope()
    found = resolve(
        parse("a: {list_join: [3, [x]]}\nb: {list_join: ['', [{str_split: x}]]}"), around
    )
    fields = cast("dict[str, YamlNode]", found.value)
    with pytest.raises(NotKnownYet, match="list_join: text is needed, not the number 3") as caught:
        mapping(fields["a"])
    assert (caught.value.path, caught.value.line) == ("a.list_join[0]", 1)
    with pytest.raises(NotKnownYet, match="str_split: a list is needed") as caught:
        refuse_deferred(fields["b"])
    assert caught.value.path == "b.list_join[1][0].str_split"
    assert [one.partition(":")[0] for one in around.remarks] == [
        "a.list_join[0] (line 1)",
        "b.list_join[1][0].str_split (line 2)",
    ]


def test_a_missing_path_of_a_parameter_is_remarked_on() -> None:
    around = scope()
    assert resolve(parse("a: {get_param: [flavors, app]}"), around).plain() == {"a": ""}
    (remark,) = around.remarks
    assert remark.startswith("a.get_param (line 1): get_param: nothing at app in a mapping;")


ADDRESS = "{get_attr: [web, first_address]}"


@pytest.mark.parametrize(
    "text",
    [
        ADDRESS,
        "{get_resource: web}",
        "{get_attr: [web]}",
        "{resource_facade: metadata}",
        f"{{str_replace: {{template: a-X, params: {{X: {ADDRESS}}}}}}}",
        f"{{str_replace: {{template: a-X, params: {{X: [{ADDRESS}]}}}}}}",
        f"{{str_replace: {{template: a-X, params: {ADDRESS}}}}}",
        "{list_join: ['-', [a, {get_resource: web}]]}",
        f"{{list_join: ['-', {ADDRESS}]}}",
        f"{{str_split: ['-', {ADDRESS}, 0]}}",
        f"{{digest: [md5, {ADDRESS}]}}",
        f"{{map_merge: [{{a: b}}, {ADDRESS}]}}",
        f"{{map_replace: [{ADDRESS}, {{}}]}}",
        f"{{filter: [[a], [{ADDRESS}]]}}",
        f"{{list_concat: [[a], {ADDRESS}]}}",
        f"{{list_concat_unique: [[a], [{ADDRESS}]]}}",
        f"{{contains: [a, [{ADDRESS}]]}}",
        f"{{make_url: {{host: {ADDRESS}}}}}",
        f"{{repeat: {{template: a, for_each: {ADDRESS}}}}}",
        f"{{yaql: {{expression: $.data, data: {ADDRESS}}}}}",
        "{if: [{equals: [{get_param: later}, a]}, a, b]}",
        "{get_param: [later, path]}",
    ],
)
def test_a_function_of_what_is_known_later_is_known_later(text: str) -> None:
    around = scope()
    parameters = {**around.parameters, "later": value(ADDRESS)}
    around = Scope(around.stack, around.version, parameters, around.resources)
    found = resolve(parse(text), around)
    assert isinstance(found.value, DeferredValue), text
    assert not list(around.remarks)
    with pytest.raises(NotKnownYet):
        refuse_deferred(found)


AROUND = """
map_merge:
  - flavor: f
  - r:
      repeat:
        template: [x, '%i%', '%n%', to %n%]
        for_each: {'%i%': [a], '%n%': [{get_resource: web}]}
"""


def test_what_is_known_around_a_later_value_stays_known() -> None:
    found = value(AROUND)
    fields = cast("dict[str, YamlNode]", found.value)
    assert fields["flavor"].value == "f"
    ((x, a, reference, text),) = (
        cast("list[YamlNode]", one.value) for one in cast("list[YamlNode]", fields["r"].value)
    )
    assert (x.value, a.value) == ("x", "a")
    assert isinstance(reference.value, ResourceReference)
    assert isinstance(text.value, DeferredValue)
    assert not isinstance(text.value, ResourceReference)


@pytest.mark.parametrize(
    "text",
    [
        "{get_resource: web}",
        "{list_join: ['', [{get_resource: web}]]}",
        "{str_replace: {template: X, params: {X: {get_resource: web}}}}",
        "{if: [true, {get_resource: web}, a]}",
    ],
)
def test_a_reference_alone_stays_a_reference(text: str) -> None:
    reference = value(text).value
    assert isinstance(reference, ResourceReference)
    assert str(reference.target) == "nested/web"


def test_an_id_is_never_empty() -> None:
    around = scope()
    parameters = {**around.parameters, "group": value("{get_resource: web}")}
    conditions = conditions_of(Scope(ROOT, around.version, parameters, around.resources))
    for text in ("''", "null"):
        assert not conditions.holds(parse(f"{{equals: [{{get_param: group}}, {text}]}}"))
        assert conditions.holds(parse(f"{{not: {{equals: [{text}, {{get_param: group}}]}}}}"))
    with pytest.raises(NotKnownYet, match="the id of nested/web"):
        conditions.holds(parse("{equals: [{get_param: group}, a-name]}"))


def test_one_condition_may_be_enough_whatever_comes_later() -> None:
    around = scope()
    parameters = {**around.parameters, "later": value("{get_attr: [web, name]}")}
    conditions = conditions_of(
        Scope(ROOT, around.version, parameters, around.resources, around.conditions)
    )
    later = "{equals: [{get_param: later}, a]}"
    assert conditions.holds(parse(f"{{or: [{later}, small]}}"))
    assert not conditions.holds(parse(f"{{and: [{later}, large]}}"))
    for text in (f"{{or: [{later}, large]}}", f"{{and: [{later}, small]}}", f"{{not: {later}}}"):
        with pytest.raises(NotKnownYet, match="name of nested/web"):
            conditions.holds(parse(text))


def test_values_and_lists_know_what_is_later_in_them() -> None:
    assert find_deferred(value("[1, {a: {get_resource: web}}]")) is not None
    assert find_deferred(value("[1, {a: b}]")) is None


def aws(text: str) -> YamlNode:
    maps = mapping(parse("sizes: {eu: {'1': small, many: large}}"))
    around = Scope(
        ROOT,
        AWS,
        mapping(parse(PARAMETERS)),
        {"web": parse("Type: AWS::EC2::Instance")},
        conditions=mapping(parse("big: {'Fn::Equals': [{Ref: name}, shop]}")),
        mappings=maps,
    )
    return resolve(parse(text), around)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'Fn::FindInMap': [sizes, eu, many]}", "large"),
        ("{'Fn::FindInMap': [sizes, eu, 1]}", "small"),
        ("{'Fn::FindInMap': [sizes, {'Fn::Select': [0, [eu]]}, many]}", "large"),
        ("{'Fn::If': [big, a, b]}", "a"),
        ("{'Fn::If': [{'Fn::Not': [big]}, a, b]}", "b"),
        ("{'Fn::If': [{'Fn::And': [big, {'Fn::Not': [{Ref: flag}]}]}, a, b]}", "b"),
        ("{'Fn::If': [{'Fn::Or': [{'Fn::Not': [big]}, big]}, a, b]}", "a"),
        ("{get_param: name}", {"get_param": "name"}),
        ("{'Fn::Equals': [a, b]}", {"Fn::Equals": ["a", "b"]}),
    ],
)
def test_functions_of_the_form_of_aws(text: str, expected: object) -> None:
    assert aws(text).plain() == expected


@pytest.mark.parametrize(
    "text", ["{'Fn::GetAtt': [web, PublicIp]}", "{'Fn::GetAZs': ''}", "{Ref: web}"]
)
def test_aws_values_are_known_later_too(text: str) -> None:
    assert isinstance(aws(text).value, DeferredValue)


@pytest.mark.parametrize(
    "text",
    [
        "{a: {'Fn::FindInMap': [sizes, us, many]}}",
        "{a: {'Fn::FindInMap': [nope, us, many]}}",
        "{a: {'Fn::FindInMap': [sizes, eu]}}",
        "{'Fn::If': [{'Fn::Not': big}, a, b]}",
        "{'Fn::If': [big, a]}",
        "{Ref: nope}",
    ],
)
def test_wrong_calls_of_the_form_of_aws_are_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        refuse_deferred(aws(text))


def test_what_an_old_version_does_not_know_is_data() -> None:
    assert known("{if: [a, b, c]}", "2015-04-30") == {"if": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("heat_template_version: 2013-05-23", "2013-05-23"),
        ("heat_template_version: '2021-04-16'", "2021-04-16"),
        ("HeatTemplateFormatVersion: 2012-12-12", "2012-12-12"),
    ],
)
def test_a_version_may_be_written_as_a_date(text: str, said: str) -> None:
    assert version_of(parse(text)).name == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "heat_template_version is missing"),
        ("resources: {}", "heat_template_version is missing"),
        ("heat_template_version: zed", "unknown heat_template_version"),
        ("AWSTemplateFormatVersion: '2012-12-12'", "known: 2010-09-09"),
        ("{heat_template_version: rocky, AWSTemplateFormatVersion: '2010-09-09'}", "two versions"),
    ],
)
def test_a_template_without_one_known_version_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said):
        version_of(parse(text))


NAMES = sorted(VERSIONS["wallaby"].functions | VERSIONS["2013-05-23"].functions | AWS.functions)
WORDS = st.sampled_from(
    (
        *("", "a", "web", "name", "zones", "flavors", "large", "md5", "%i%", "template", "params"),
        *("for_each", "data", "expression", "keys", "values", "host", "port", "$.data", "[1]"),
    )
)
LEAVES = WORDS | st.sampled_from([None, True, 0, 1, -1, 2.5, 10**30])
ANYTHING = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(WORDS, below, max_size=3)
        | st.tuples(st.sampled_from(NAMES), below).map(lambda pair: dict([pair]))
    ),
    max_leaves=12,
)


@given(
    ANYTHING,
    st.sampled_from([VERSIONS["wallaby"], VERSIONS["2013-05-23"], VERSIONS["2016-10-14"], AWS]),
)
def test_any_call_has_a_value_or_one_error(anything: Plain, version: Version) -> None:
    around = replace(scope(), version=version)
    node = to_node(anything, line=7, path="x")
    try:
        found = resolve(node, around)
    except InvalidDescription as error:
        assert error.line == 7  # noqa: PT017 - either outcome is right
    else:
        assert found.line
        found.plain()
    with suppress(InvalidDescription):
        conditions_of(around).holds(node)
