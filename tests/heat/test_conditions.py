"""Conditions, and the branches that hang on them."""

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template
from moorage.heat.conditions import MAX_DEPTH
from moorage.heat.placed_template import prepare
from moorage.heat.template_writer import TemplateDecision

TEMPLATE = """\
heat_template_version: wallaby
parameters:
  kind: {type: string, default: small}
  spare: {type: boolean, default: false}
conditions:
  large: {equals: [{get_param: kind}, large]}
  extra: {or: [large, {get_param: spare}]}
  never: {and: [large, {not: large}]}
resources:
  web:
    type: OS::Nova::Server
    properties:
      flavor: {if: [large, m1.large, {if: [{not: extra}, m1.small, m1.medium]}]}
      availability_zone: {if: [extra, az2]}
      metadata: {kept: 'yes', more: {if: [never, x]}}
  standby:
    type: OS::Nova::Server
    condition: extra
    properties: {flavor: m1.tiny}
  ghost:
    type: OS::No::Such
    condition: never
"""


def shape(compiled: CompiledTemplate) -> dict[str, str | None]:
    return {role.name: role.flavor for role in compiled.description.roles}


@pytest.mark.parametrize(
    ("parameters", "expected", "zones"),
    [
        ({}, {"web": "m1.small"}, []),
        ({"spare": "yes"}, {"web": "m1.medium", "standby": "m1.tiny"}, ["zone-az2"]),
        ({"kind": "large"}, {"web": "m1.large", "standby": "m1.tiny"}, ["zone-az2"]),
    ],
)
def test_conditions_choose_resources_and_values(
    parameters: dict[str, str], expected: dict[str, str], zones: list[str]
) -> None:
    source = Source(TEMPLATE, parameters=parameters)
    compiled = compile_template(source)
    assert shape(compiled) == expected
    assert [one.name for one in compiled.description.policies] == zones
    places: dict[object, dict[str, str]] = {member: {} for member in compiled.keys}
    written = prepare(source, compiled).with_decision(TemplateDecision("e", "d", places))  # type: ignore[arg-type] # keys are member names
    assert compile_template(Source(written.template)) == compiled


@pytest.mark.parametrize(
    ("before", "after", "path", "said"),
    [
        ("[{get_param: kind}, large]", "[a]", "conditions.large.equals", r"\[value, value\]"),
        ("{equals: [{get_param: kind}, large]}", "extra", "conditions.large", "neither true"),
        (
            "{equals: [{get_param: kind}, large]}",
            "{not: extra}",
            "conditions.extra.or[0]",
            "asks for itself",
        ),
        (
            "[{get_param: kind}, large]",
            "[{if: [large, a, b]}, a]",
            "conditions.large.equals[0]",
            "if cannot be used in a condition",
        ),
        (
            "[large, {not: large}]",
            "[{yaql: large}, {not: large}]",
            "conditions.never.and[0].yaql",
            "a map",
        ),
        (
            "{get_param: spare}]",
            "{get_param: kind}]",
            "conditions.extra.or[1].get_param",
            "no condition 'small'",
        ),
        ("{get_param: spare}]", "nope]", "conditions.extra.or[1]", "no condition 'nope'"),
        ("[large, {get_param: spare}]", "[large]", "conditions.extra.or", "at least 2"),
        ("condition: extra", "condition: 3", "resources.standby.condition", "a condition is"),
        (
            "{if: [extra, az2]}",
            "{if: [extra]}",
            "resources.web.properties.availability_zone.if",
            "if takes",
        ),
        (
            "[{get_param: kind}, large]",
            "[{get_attr: [web, name]}, large]",
            "conditions.large.equals[0]",
            "get_attr cannot be used in a condition",
        ),
    ],
)
def test_what_cannot_be_judged_names_its_place(
    before: str, after: str, path: str, said: str
) -> None:
    assert before in TEMPLATE
    with pytest.raises(InvalidDescription, match=said) as caught:
        compile_template(Source(TEMPLATE.replace(before, after, 1)))
    assert caught.value.path == path
    assert caught.value.line


def test_a_long_chain_of_conditions_is_refused_not_followed() -> None:
    links = MAX_DEPTH + 1
    chain = "".join(f"  c{i}: {{not: c{i + 1}}}\n" for i in range(links)) + f"  c{links}: true\n"
    text = TEMPLATE.replace("conditions:\n", f"conditions:\n{chain}")
    compile_template(Source(text))  # nothing asks for them
    text = text.replace("condition: extra", "condition: c0")
    with pytest.raises(InvalidDescription, match="more than 20 deep"):
        compile_template(Source(text))


def test_an_if_without_its_second_value_is_wallabys() -> None:
    with pytest.raises(InvalidDescription, match="if takes"):
        compile_template(Source(TEMPLATE.replace("wallaby", "rocky")))


def test_files_are_read_where_they_lie() -> None:
    server = "type: OS::Nova::Server, properties: {flavor: {get_file: size.txt}}"
    nested = f"heat_template_version: wallaby\nresources:\n  s: {{{server}}}\n"
    root = "heat_template_version: wallaby\nresources:\n  n: {type: lib/n.yaml}\n"
    source = Source(root, files={"lib/n.yaml": nested, "lib/size.txt": "m1.small"})
    compiled = compile_template(source)
    assert shape(compiled) == {"n/s": "m1.small"}
    places: dict[object, dict[str, str]] = {member: {} for member in compiled.keys}
    written = prepare(source, compiled).with_decision(TemplateDecision("e", "d", places))  # type: ignore[arg-type] # keys are member names
    assert written.files["lib/size.txt"] == "m1.small"
    assert compile_template(Source(written.template, files=written.files)) == compiled
    with pytest.raises(InvalidDescription, match=r"lib/size\.txt is missing") as caught:
        compile_template(Source(root, files={"lib/n.yaml": nested}))
    assert caught.value.path == "lib/n.yaml.resources.s.properties.flavor.get_file"


def scaled(sizes: str, more: str = "") -> str:
    return f"""\
heat_template_version: wallaby
resources:
  {more}
  web:
    type: OS::Heat::AutoScalingGroup
    metadata: {{moorage: {{policies: [{{type: anti-affinity, level: host, members: ['*']}}]}}}}
    properties: {{{sizes}, resource: {{type: OS::Nova::Server, properties: {{flavor: f}}}}}}
"""


@pytest.mark.parametrize(
    ("sizes", "members"),
    [
        ("min_size: 2, max_size: 5", 2),
        ("min_size: 1, max_size: 5, desired_capacity: '3'", 3),
        ("min_size: 0, max_size: 5, desired_capacity: null", 0),
    ],
)
def test_an_autoscaling_group_begins_with_what_is_desired(sizes: str, members: int) -> None:
    text = scaled(sizes, "one: {type: OS::Nova::Server, properties: {flavor: f}}")
    compiled = compile_template(Source(text))
    assert len(compiled.keys) == members + 1
    source = Source(text)
    written = prepare(source, compiled).with_decision(
        TemplateDecision("e", "d", {member: {} for member in compiled.keys})
    )
    assert compile_template(Source(written.template)) == compiled
    assert ("moorage:member: web\n" in written.template) == (members > 0)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("min_size: 1", "needs max_size"),
        ("min_size: 3, max_size: 2", "less than min_size"),
        ("min_size: 1, max_size: 2, desired_capacity: 3", "not between"),
        ("min_size: -1, max_size: 2", "must be between"),
        ("min_size: 1, max_size: 2, count: 1", "no property 'count'"),
    ],
)
def test_an_absurd_autoscaling_group_is_refused(sizes: str, said: str) -> None:
    text = scaled(sizes)
    with pytest.raises(InvalidDescription, match=said):
        compile_template(Source(text))
