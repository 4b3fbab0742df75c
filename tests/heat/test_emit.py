"""A template written again with its decision: the same members, and nothing else changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template
from moorage.heat.member_names import PASSED_PARAMETERS
from moorage.heat.placed_template import EmittedTemplate, prepare
from moorage.heat.template_writer import Binding, TemplateDecision

EXAMPLES = Path(__file__).parents[2] / "examples"
ENSEMBLE = "b1d7b1d7-0000-4000-8000-000000000000"
NESTED = """\
heat_template_version: wallaby
parameters: {size: {type: string}}
resources:
  s: {type: OS::Nova::Server, properties: {flavor: {get_param: size}}}
"""


def decided(compiled: CompiledTemplate) -> TemplateDecision:
    places = {name: {"rack": f"r-{i}", "host": f"h-{i}"} for i, name in enumerate(compiled.keys)}
    return TemplateDecision(ENSEMBLE, "6f0c", places)


def written_with(source: Source) -> tuple[CompiledTemplate, EmittedTemplate]:
    compiled = compile_template(source)
    return compiled, prepare(source, compiled).with_decision(decided(compiled))


def emitted(source: Source) -> tuple[CompiledTemplate, str]:
    compiled, written = written_with(source)
    return compiled, written.template


SERVER = st.fixed_dictionaries(
    {"flavor": st.sampled_from(["m1.small", "m1.large", "1"])},
    optional={
        "name": st.just("s-%index%"),
        "user_data": st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))),
        "metadata": st.dictionaries(st.sampled_from(["a", "b"]), st.text("xyz:-%", max_size=5)),
        "availability_zone": st.sampled_from(["az1", "az2"]),
        "scheduler_hints": st.just({"group": {"get_resource": "sg"}}),
    },
)
ANNOTATION = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.just(["fast"]),
        "policies": st.just([{"type": "ban", "domains": ["r9"]}]),
    },
)


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    server: dict[str, Any] = {"type": "OS::Nova::Server", "properties": draw(SERVER)}
    if draw(st.booleans()):
        server["metadata"] = {"moorage": draw(ANNOTATION), "mine": [1, "2", None]}
    kind = draw(st.sampled_from(["server", "group", "nested"]))
    if kind == "server":
        return server
    if kind == "nested":
        server = {"type": "n.yaml", "properties": {"size": "m1.small"}}
    properties = {"count": draw(st.integers(1, 4)), "resource_def": server}
    if draw(st.booleans()):
        properties["index_var"] = "<n>"
    return {"type": "OS::Heat::ResourceGroup", "properties": properties}


TEMPLATES = st.dictionaries(
    st.text("abcz_-09", min_size=1, max_size=6).filter(lambda name: name[0] in "abcz"),
    resources(),
    min_size=1,
    max_size=5,
).map(
    lambda found: {
        "heat_template_version": "2018-08-31",
        "resources": {**found, "sg": {"type": "OS::Nova::ServerGroup"}},
    }
)


@given(TEMPLATES)
def test_what_is_emitted_parses_to_the_same_members(template: dict[str, Any]) -> None:
    text = yaml.safe_dump(template, sort_keys=False, allow_unicode=True)
    compiled, written = written_with(Source(text, files={"n.yaml": NESTED}))
    again, rewritten = written_with(Source(written.template, files=written.files))
    assert again == compiled
    assert rewritten == written, "the same decision, written again, changes nothing"


@given(TEMPLATES)
def test_nothing_but_the_decision_is_added(template: dict[str, Any]) -> None:
    text = yaml.safe_dump(template, sort_keys=False, allow_unicode=True)
    _, written = emitted(Source(text, files={"n.yaml": NESTED}))
    assert without_decision(yaml.safe_load(written)) == without_decision(yaml.safe_load(text))


def without_decision(value: Any) -> Any:
    if isinstance(value, list):
        return [without_decision(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: without_decision(one)
        for key, one in value.items()
        if key not in {"decided", "moorage:ensemble", "moorage:member", *PASSED_PARAMETERS}
    }
    if is_hint(value.get("scheduler_hints")):
        del kept["scheduler_hints"]["moorage"]
    empty = {"metadata", "moorage", "scheduler_hints"}
    return {key: one for key, one in kept.items() if one or key not in empty}


def is_hint(hints: Any) -> bool:
    return isinstance(hints, dict) and "moorage" in hints


def test_the_shop_carries_its_decision() -> None:
    text = (EXAMPLES / "shop-hot.yaml").read_text(encoding="utf-8")
    environment = (EXAMPLES / "env.yaml").read_text(encoding="utf-8")
    compiled, written = emitted(Source(text, environment))
    assert compile_template(Source(written, environment)) == compiled
    document = yaml.safe_load(written)
    assert list(document) == list(yaml.safe_load(text)), "sections keep their order"
    assert list(document["resources"]) == list(yaml.safe_load(text)["resources"])
    web = document["resources"]["web"]
    decision = web["metadata"]["moorage"]["decided"]
    assert (decision["ensemble"], decision["decision"]) == (ENSEMBLE, "6f0c")
    assert list(decision["places"]) == ["web[0]", "web[1]", "web[2]"]
    assert web["properties"]["resource_def"]["properties"]["metadata"] == {
        "moorage:ensemble": ENSEMBLE,
        "moorage:member": "web[%index%]",
    }
    assert document["heat_template_version"] == "2021-04-16", "a date stays text"
    assert "moorage" not in str(document["resources"]["traffic"])


def test_an_aliased_resource_is_written_for_each() -> None:
    text = (
        "heat_template_version: wallaby\nresources:\n"
        "  a: &a {type: OS::Nova::Server, properties: {flavor: f}}\n  b: *a\n"
    )
    _, written = emitted(Source(text))
    found = yaml.safe_load(written)["resources"]
    assert [one["properties"]["metadata"]["moorage:member"] for one in found.values()] == [
        "a[0]",
        "b[0]",
    ]


def test_a_computed_mapping_is_left_alone() -> None:
    text = (
        "heat_template_version: wallaby\n"
        "parameters: {labels: {type: json, default: {a: b}}}\nresources:\n"
        "  a: {type: OS::Nova::Server, properties: {flavor: f, metadata: {get_param: labels}}}\n"
    )
    _, written = emitted(Source(text))
    found = yaml.safe_load(written)["resources"]["a"]
    assert found["properties"]["metadata"] == {"get_param": "labels"}
    assert "decided" in found["metadata"]["moorage"]


def test_parameters_of_the_call_become_defaults_but_hidden_ones_do_not() -> None:
    text = (
        "heat_template_version: wallaby\nparameters:\n"
        "  k: {type: number, default: 2, constraints: [{range: {min: 1}}]}\n"
        "  sizes: {type: comma_delimited_list}\n"
        "  on: {type: boolean, default: false}\n"
        "  tag: {type: string, default: '1'}\n"
        "  secret: {type: string, hidden: true, default: none}\n"
        "resources:\n  g:\n    type: OS::Heat::ResourceGroup\n    properties:\n"
        "      count: {get_param: k}\n      resource_def:\n        type: OS::Nova::Server\n"
        "        properties: {flavor: {get_param: [sizes, 0]}}\n"
    )
    given = {"k": "4", "sizes": "m1.small,x", "on": "yes", "tag": "2026-11-21", "secret": "word"}
    compiled, written = emitted(Source(text, parameters=given))
    assert len(compiled.keys) == 4
    again = compile_template(Source(written))
    assert (again.keys, again.description) == (compiled.keys, compiled.description)
    declared = yaml.safe_load(written)["parameters"]
    assert {name: one["default"] for name, one in declared.items()} == {
        "k": 4,
        "sizes": ["m1.small", "x"],
        "on": True,
        "tag": "2026-11-21",
        "secret": "none",
    }
    assert declared["k"]["constraints"] == [{"range": {"min": 1}}]
    assert "word" not in written


def test_a_resource_may_be_called_like_a_truth_value() -> None:
    server = "{type: OS::Nova::Server, properties: {flavor: f}}"
    text = f"heat_template_version: wallaby\nresources: {{on: {server}, 1: {server}}}\n"
    compiled, written = emitted(Source(text))
    assert compile_template(Source(written)) == compiled
    assert [str(name) for name in compiled.keys] == ["on[0]", "1[0]"]


def test_where_nothing_can_be_added_says_so() -> None:
    text = (
        "heat_template_version: wallaby\n"
        "parameters: {meta: {type: json, default: {}}}\nresources:\n"
        "  a:\n    type: OS::Nova::Server\n"
        "    metadata: {get_param: meta}\n    properties: {flavor: f}\n"
    )
    with pytest.raises(InvalidDescription, match="computed") as caught:
        emitted(Source(text))
    assert caught.value.line == 5


BOUND = """\
heat_template_version: wallaby
parameters: {size: {type: string, default: m1.small}}
resources:
  db: {type: OS::Nova::Server, properties: {flavor: m1.large, scheduler_hints: {mine: x}}}
  web:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def: {type: OS::Nova::Server, properties: {flavor: {get_param: size}}}
  any:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      resource: {type: n.yaml, properties: {size: m1.small}}
  pods:
    type: OS::Heat::ResourceGroup
    properties: {count: 1, resource_def: {type: n.yaml, properties: {size: m1.small}}}
"""


def bound_by(binding: Binding, source: Source) -> tuple[CompiledTemplate, EmittedTemplate]:
    compiled = compile_template(source)
    flavors = {role.name: f"ticket-{role.name}" for role in compiled.description.roles}
    decision = replace(decided(compiled), binding=binding, flavors=flavors)
    return compiled, prepare(source, compiled, binding).with_decision(decision)


def test_hints_name_the_members() -> None:
    _, written = bound_by(Binding.HINTS, Source(BOUND, files={"n.yaml": NESTED}))
    found = yaml.safe_load(written.template)["resources"]
    assert found["db"]["properties"]["scheduler_hints"] == {
        "mine": "x",
        "moorage": f"{ENSEMBLE}/db[0]",
    }
    web = found["web"]["properties"]["resource_def"]["properties"]
    assert web["scheduler_hints"] == {"moorage": f"{ENSEMBLE}/web[%index%]"}
    (inner,) = yaml.safe_load(written.files["n.yaml"])["resources"].values()
    assert inner["properties"]["scheduler_hints"] == {
        "moorage": {
            "list_join": [
                "",
                [
                    f"{ENSEMBLE}/",
                    {"get_param": "moorage_role"},
                    "/s",
                    {"get_param": "moorage_index"},
                ],
            ]
        }
    }
    scaled = found["any"]["properties"]["resource"]["properties"]
    assert scaled["moorage_index"] == "", "Heat tells a scaled member no number"


def test_flavors_are_those_of_the_tickets_and_the_way_back_is_kept() -> None:
    source = Source(BOUND, files={"n.yaml": NESTED})
    compiled, written = bound_by(Binding.FLAVORS, source)
    found = yaml.safe_load(written.template)["resources"]
    assert found["db"]["properties"]["flavor"] == "ticket-db"
    assert found["db"]["metadata"]["moorage"]["decided"]["flavor"] == "m1.large"
    again = compile_template(Source(written.template, files=written.files))
    assert again == compiled, "read again it is the template as it was"
    written_back = bound_by(Binding.FLAVORS, Source(written.template, files=written.files))[1]
    assert written_back.template == written.template


def test_nothing_binds_where_nothing_is_to_bind() -> None:
    _, written = bound_by(Binding.NONE, Source(BOUND, files={"n.yaml": NESTED}))
    assert "scheduler_hints:\n      moorage" not in written.template
    assert yaml.safe_load(written.template)["resources"]["db"]["properties"]["flavor"] == "m1.large"


def test_members_that_differ_are_bound_by_the_names_of_their_roles() -> None:
    source = Source(BOUND.replace("{get_param: size}", "m1.%index%"), files={"n.yaml": NESTED})
    _, written = bound_by(Binding.HINTS, source)
    web = yaml.safe_load(written.template)["resources"]["web"]["properties"]["resource_def"]
    assert web["properties"]["scheduler_hints"] == {"moorage": f"{ENSEMBLE}/web/%index%[0]"}
    with pytest.raises(InvalidDescription, match="not alike"):
        bound_by(Binding.FLAVORS, source)


def test_a_group_in_a_member_of_a_scaling_group_cannot_be_bound() -> None:
    nested = NESTED.replace(
        "s: {type: OS::Nova::Server, properties: {flavor: {get_param: size}}}",
        "g: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def:"
        " {type: OS::Nova::Server, properties: {flavor: {get_param: size}}}}}",
    )
    source = Source(BOUND, files={"n.yaml": nested})
    with pytest.raises(InvalidDescription, match="does not tell") as caught:
        bound_by(Binding.HINTS, source)
    assert caught.value.path == "n.yaml.resources.g"
    bound_by(Binding.NONE, source)


def test_instances_of_a_template_of_cloudformation_are_bound() -> None:
    text = (
        "HeatTemplateFormatVersion: '2012-12-12'\nResources:\n"
        "  C: {Type: AWS::AutoScaling::LaunchConfiguration,\n"
        "      Properties: {ImageId: i, InstanceType: f}}\n"
        "  G: {Type: AWS::AutoScaling::AutoScalingGroup, Properties: {AvailabilityZones: [a],\n"
        "      LaunchConfigurationName: {Ref: C}, MinSize: 2, MaxSize: 3}}\n"
        "  I: {Type: AWS::EC2::Instance, Properties: {ImageId: i, InstanceType: f}}\n"
    )
    compiled, written = bound_by(Binding.HINTS, Source(text))
    found = yaml.safe_load(written.template)["Resources"]
    hints = {name: one["Properties"].get("NovaSchedulerHints") for name, one in found.items()}
    assert hints == {
        "C": [{"Key": "moorage", "Value": f"{ENSEMBLE}/G"}],
        "G": None,
        "I": [{"Key": "moorage", "Value": f"{ENSEMBLE}/I[0]"}],
    }
    assert compile_template(Source(written.template)) == compiled


def test_files_named_by_urls_are_written_below_the_template() -> None:
    url = "file:///home/me"
    text = "heat_template_version: wallaby\nresources: {a: {type: 'file:///home/me/lib/p.yaml'}}\n"
    pod = f"{NESTED}".replace("{size: {type: string}}", "{size: {type: string, default: f}}")
    source = Source(
        text,
        environment_files=(f"{url}/env.yaml",),
        files={f"{url}/lib/p.yaml": pod, f"{url}/env.yaml": "", f"{url}/x.sh": "echo\n"},
    )
    compiled, written = written_with(source)
    assert set(written.files) == {"lib/p.yaml", "x.sh"}
    again = compile_template(Source(written.template, files=written.files))
    assert again.keys == compiled.keys


def test_computed_hints_are_merged_with_the_member_s() -> None:
    text = (
        "heat_template_version: wallaby\nparameters: {one: {type: json, default: {mine: x}}}\n"
        "resources:\n  s:\n    type: OS::Nova::Server\n"
        "    properties: {flavor: f, scheduler_hints: {get_param: one}}\n"
    )
    compiled, written = written_with(Source(text))
    hints = yaml.safe_load(written.template)["resources"]["s"]["properties"]["scheduler_hints"]
    assert hints == {"map_merge": [{"get_param": "one"}, {"moorage": f"{ENSEMBLE}/s[0]"}]}
    assert written.notes == ()
    again, rewritten = written_with(Source(written.template))
    assert (again, rewritten) == (compiled, written)


@pytest.mark.parametrize(
    "resource",
    [
        "type: OS::Nova::Server, properties: {flavor: f, scheduler_hints: {get_param: one}}",
        (
            "type: OS::Heat::ResourceChain, properties: {resources: [OS::Nova::Server],"
            " resource_properties: {flavor: f}}"
        ),
    ],
)
def test_what_cannot_be_bound_is_told(resource: str) -> None:
    text = (
        "heat_template_version: 2015-04-30\nparameters: {one: {type: json, default: {a: b}}}\n"
        f"resources: {{s: {{{resource}}}}}\n"
    )
    compiled, written = written_with(Source(text))
    assert compile_template(Source(written.template)).keys == compiled.keys
    (note,) = written.notes
    assert note.startswith("not bound: s")
    assert bound_by(Binding.NONE, Source(text))[1].notes == ()


def in_groups(member: str, *variables: str) -> Source:
    """A group of two groups of two …, each with its index variable."""
    for variable in variables:
        member = (
            "{type: OS::Heat::ResourceGroup, properties: {count: 2"
            + (f", index_var: '{variable}'" if variable else "")
            + f", resource_def: {member}}}}}"
        )
    text = f"heat_template_version: wallaby\nresources: {{g: {member}}}\n"
    nested = "heat_template_version: wallaby\nresources: {s: " + SERVER_OF_F + "}\n"
    return Source(text, files={"n.yaml": nested})


SERVER_OF_F = "{type: OS::Nova::Server, properties: {flavor: f}}"


@pytest.mark.parametrize(
    ("variables", "inner", "hint"),
    [
        (("%i%", "%o%"), "%i%", "g/%o%[%i%]"),
        (("", "%o%"), None, "g/%o%[%index%]"),
        (("", ""), "%member-1%", "g/%index%[%member-1%]"),
    ],
)
def test_groups_inside_groups_are_bound_by_the_numbers_of_both(
    variables: tuple[str, ...], inner: str | None, hint: str
) -> None:
    """Heat replaces an outer group's variable in all of the inner one, its own name included."""
    source = in_groups(SERVER_OF_F, *variables)
    compiled, written = written_with(source)
    outer = yaml.safe_load(written.template)["resources"]["g"]["properties"]["resource_def"]
    assert outer["properties"].get("index_var") == inner
    server = outer["properties"]["resource_def"]["properties"]
    assert server["scheduler_hints"] == {"moorage": f"{ENSEMBLE}/{hint}"}
    assert written.notes == ()
    again = compile_template(Source(written.template))
    assert (again.keys, again.description) == (compiled.keys, compiled.description)


def test_a_nested_template_in_groups_of_groups_is_handed_its_name() -> None:
    _, written = written_with(in_groups("{type: n.yaml}", "", "", ""))
    group = yaml.safe_load(written.template)["resources"]["g"]
    for _ in range(3):
        group = group["properties"]["resource_def"]
    assert group["properties"] == {
        "moorage_stack": "g/%index%/%member-1%/%member-2%",
        "moorage_role": "g/%index%/%member-1%",
        "moorage_index": "[%member-2%]",
    }


def test_no_one_flavor_can_be_written_for_groups_inside_groups() -> None:
    _, written = bound_by(Binding.FLAVORS, in_groups(SERVER_OF_F, "", ""))
    (note,) = written.notes
    assert note.startswith("not bound: g/0, g/1:")


def test_a_group_s_definition_in_a_template_of_cloudformation_has_the_keys_of_hot() -> None:
    text = (
        "HeatTemplateFormatVersion: '2012-12-12'\nResources:\n"
        "  G: {Type: OS::Heat::ResourceGroup, Properties: {resource_def: " + SERVER_OF_F + "}}\n"
    )
    _, written = written_with(Source(text))
    made = yaml.safe_load(written.template)["Resources"]["G"]["Properties"]["resource_def"]
    assert made.keys() == {"type", "properties"}
    assert made["properties"]["scheduler_hints"] == {"moorage": f"{ENSEMBLE}/G[%index%]"}


def test_the_types_of_a_chain_are_written_as_the_registry_maps_them() -> None:
    text = (
        "heat_template_version: wallaby\nresources: {c: {type: OS::Heat::ResourceChain,"
        " properties: {resources: [My::Server], resource_properties: {flavor: f}}}}\n"
    )
    registry = "resource_registry: {'My::Server': TYPE}"
    source = Source(text, environment=registry.replace("TYPE", "OS::Nova::Server"))
    _, written = written_with(source)
    chain = yaml.safe_load(written.template)["resources"]["c"]["properties"]
    assert chain["resources"] == ["OS::Nova::Server"]
    nested = f"heat_template_version: wallaby\nresources: {{s: {SERVER_OF_F}}}\n"
    mapped = registry.replace("TYPE", "n.yaml")
    alone = text.replace("{flavor: f}", "{}")
    with pytest.raises(InvalidDescription, match="sends no nested template") as caught:
        written_with(Source(alone, environment=mapped, files={"n.yaml": nested}))
    assert caught.value.path == "resources.c.properties.resources[0]"


def test_what_types_mean_in_single_members_cannot_be_written() -> None:
    env = "resource_registry: {resources: {g: {'1': {'OS::Nova::Server': OS::Heat::None}}}}"
    source = replace(in_groups(SERVER_OF_F, ""), environment=env)
    with pytest.raises(InvalidDescription, match="single members") as caught:
        written_with(source)
    assert caught.value.path == "resources.g.type"
