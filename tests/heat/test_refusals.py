"""What a template may not say: every refusal names path and line, and nothing is skipped."""

import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source, compile_template
from moorage.heat.template import named_files

SHOP = (Path(__file__).parents[2] / "examples" / "shop-hot.yaml").read_text(encoding="utf-8")
ENVIRONMENT = "parameters: {network: net}\n"

TEMPLATE = """\
heat_template_version: wallaby
parameters:
  size: {type: string, default: m1.small}
resources:
  sg:
    type: OS::Nova::ServerGroup
    properties: {policies: [affinity]}
    metadata: {moorage: {policies: [{type: spread, members: [web], level: rack}]}}
  port:
    type: OS::Neutron::Port
    properties: {network: net}
  web:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def:
        type: OS::Nova::Server
        properties:
          flavor: {get_param: size}
          scheduler_hints: {group: {get_resource: sg}}
  db:
    type: OS::Nova::Server
    properties:
      flavor: m1.xlarge
      networks: [{port: {get_resource: port}}]
"""

SAYS = "resources.sg.metadata.moorage"
SG, WEB, DB = (f"resources.{name}.properties" for name in ("sg", "web", "db"))
DEF = f"{WEB}.resource_def.properties"


def test_the_template_itself_is_fine() -> None:
    assert len(compile_template(Source(TEMPLATE)).keys) == 3


@pytest.mark.parametrize(
    ("before", "after", "path", "line"),
    [
        ("heat_template_version: wallaby\n", "", None, 1),
        ("wallaby", "zed", "heat_template_version", 1),
        ("parameters:", "paramters:", "paramters", 3),
        ("resources:", "conditions: {a: b}\nresources:", "conditions.a", 4),
        (
            "type: OS::Nova::ServerGroup\n",
            "condition: a\n    type: OS::X\n",
            "resources.sg.condition",
            6,
        ),
        ("OS::Neutron::Port", "OS::Heat::InstanceGroup", "resources.port", 10),
        ("OS::Neutron::Port", "AWS::EC2::Instance", "resources.port", 10),
        ("OS::Neutron::Port", "Port", "resources.port.type", 10),
        ("OS::Neutron::Port", "missing.yaml", "resources.port.type", 10),
        ("OS::Neutron::Port", "http://x/y.yaml", "resources.port.type", 10),
        ("[affinity]", "[affinity, anti-affinity]", f"{SG}.policies", 7),
        ("[affinity]", "[near]", f"{SG}.policies[0]", 7),
        (
            "[affinity]",
            "[affinity], rules: {max_server_per_host: 2}",
            f"{SG}.rules.max_server_per_host",
            7,
        ),
        (
            "[affinity]",
            "[anti-affinity], rules: {max_server_per_host: 0}",
            f"{SG}.rules.max_server_per_host",
            7,
        ),
        ("[affinity]", "[affinity], polices: x", f"{SG}.polices", 7),
        ("members: [web]", "members: [wep]", f"{SAYS}.policies[0]", 8),
        ("members: [web]", "members: []", f"{SAYS}.policies[0].members", 8),
        ("members: [web]", "members: ['web[7]']", f"{SAYS}.policies[0]", 8),
        ("{type: spread", "{typ: spread", f"{SAYS}.policies[0]", 8),
        ("moorage: {policies:", "moorage: {polices:", f"{SAYS}.polices", 8),
        (
            "moorage: {policies: [{",
            "moorage: {policies: [{name: {get_attr: [db, name]}, ",
            "resources.sg.metadata.moorage.policies[0].name.get_attr",
            8,
        ),
        ("count: 2", "count: -1", f"{WEB}.count", 15),
        ("count: 2", "count: 5001", f"{WEB}.count", 15),
        ("count: 2", "count: -2.5", f"{WEB}.count", 15),
        ("count: 2", "count: {get_attr: [db, name]}", f"{WEB}.count.get_attr", 15),
        ("count: 2", "cuont: 2", f"{WEB}.cuont", 15),
        ("count: 2", "index_var: x", f"{WEB}.index_var", 15),
        ("{get_param: size}", "{get_parm: size}", f"{DEF}.flavor", 19),
        ("{get_param: size}", "{get_param: siz}", f"{DEF}.flavor.get_param", 19),
        ("{get_param: size}", "{get_attr: [db, flavor]}", f"{DEF}.flavor.get_attr", 19),
        ("{get_param: size}", "{if: [a, b, c]}", f"{DEF}.flavor.if[0]", 19),
        ("group: {get_resource: sg}", "group: {get_resource: port}", "resources.web", 13),
        ("group: {get_resource: sg}", "same_host: x", f"{DEF}.scheduler_hints.same_host", 20),
        ("group: {get_resource: sg}", "query: '[]'", f"{DEF}.scheduler_hints.query", 20),
        (
            "group: {get_resource: sg}",
            "group: {get_attr: [db, name]}",
            f"{DEF}.scheduler_hints.group.get_attr",
            20,
        ),
        ("group: {get_resource: sg}", "different_host: {get_resource: sg}", "resources.web", 13),
        ("flavor: m1.xlarge", "flavour: m1.xlarge", f"{DB}.flavour", 24),
        ("flavor: m1.xlarge", "image: x", "resources.db", 22),
        (
            "flavor: m1.xlarge",
            "flavor: f\n      availability_zone: {get_attr: [web, zone]}",
            f"{DB}.availability_zone.get_attr",
            25,
        ),
        ("  db:", "  db:\n    depends_on: nobody", "resources.db.depends_on", 22),
        ("  db:", "  'd b':", "resources.d b", 22),
        ("  db:", "  'd/b':", "resources.d/b", 22),
    ],
)
def test_a_refusal_names_path_and_line(
    before: str, after: str, path: str | None, line: int
) -> None:
    assert before in TEMPLATE
    with pytest.raises(InvalidDescription) as caught:
        compile_template(Source(TEMPLATE.replace(before, after, 1)))
    assert (caught.value.path, caught.value.line) == (path, line), caught.value


def test_a_place_in_a_nested_template_starts_with_its_file() -> None:
    nested = textwrap.dedent(
        """\
        heat_template_version: wallaby
        resources:
          s: {type: OS::Nova::Server, properties: {flavor: {yaql: x}}}
        """
    )
    template = "heat_template_version: wallaby\nresources: {a: {type: lib/a.yaml}}\n"
    with pytest.raises(InvalidDescription) as caught:
        compile_template(Source(template, files={"lib/a.yaml": nested}))
    assert caught.value.path == "lib/a.yaml.resources.s.properties.flavor.yaql"
    assert caught.value.line == 3
    assert caught.value.message.startswith("in lib/a.yaml: ")


def test_a_nested_file_that_is_no_yaml_is_named() -> None:
    template = "heat_template_version: wallaby\nresources: {a: {type: lib/a.yaml}}\n"
    with pytest.raises(InvalidDescription, match=r"^in lib/a.yaml: not YAML") as caught:
        compile_template(Source(template, files={"lib/a.yaml": "a: [", "lib/a": "b: ["}))
    assert caught.value.path == "lib/a.yaml"


def test_what_the_service_refuses_in_a_nested_file_names_it() -> None:
    nested = (
        "heat_template_version: wallaby\nresources:\n"
        "  s: {type: OS::Nova::Server, properties: {flavor: nope}}\n"
    )
    template = "heat_template_version: wallaby\nresources: {a: {type: a.yaml}}\n"
    compiled = compile_template(Source(template, files={"a.yaml": nested}))
    error = compiled.with_location(
        InvalidDescription("no such flavor: nope", path="members[0].flavor")
    )
    assert (error.message, error.line) == ("in a.yaml: no such flavor: nope", 3)


def test_nested_templates_are_found_where_their_parent_is() -> None:
    text = "resources:\n  a: {type: ../b.yaml}\n  g: {properties: {resource_def: {type: c.yaml}}}\n"
    assert set(named_files(text, file="lib/a.yaml")) == {("b.yaml", True), ("lib/c.yaml", True)}


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ("parameters: {siz: x}", "environment.parameters.siz"),
        ("parameter: {size: x}", "environment.parameter"),
        ("parameters:", "environment.parameters"),
        ("resource_registry: {'My::Old': [a]}", "environment.resource_registry.My::Old"),
        ("resource_registry: {resources: x}", "environment.resource_registry.resources"),
        (
            "resource_registry: {resources: {a: {hooks: x}}}",
            "environment.resource_registry.resources.a.hooks",
        ),
        (
            "resource_registry: {resources: {a: {restricted_actions: [update, x]}}}",
            "environment.resource_registry.resources.a.restricted_actions[1]",
        ),
        ("parameter_merge_strategies: [a]", "environment.parameter_merge_strategies"),
        ("event_sinks: {}", "environment.event_sinks"),
        ("[]", "environment"),
    ],
)
def test_an_environment_is_refused_with_its_place(environment: str, path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        compile_template(Source(TEMPLATE, environment=environment))
    assert caught.value.path == path


def test_the_registry_maps_types() -> None:
    environment = "resource_registry: {'My::Server': 'OS::Nova::Server', 'My::Old': 'My::Server'}"
    text = TEMPLATE.replace("  db:\n    type: OS::Nova::Server", "  db:\n    type: My::Old")
    assert len(compile_template(Source(text, environment=environment)).keys) == 3
    circle = "resource_registry: {'My::Old': 'My::New', 'My::New': 'My::Old'}"
    with pytest.raises(InvalidDescription, match="circle"):
        compile_template(Source(text, environment=circle))


def test_templates_that_nest_in_themselves_end() -> None:
    itself = (
        "heat_template_version: wallaby\nresources:\n  g:\n    type: OS::Heat::ResourceGroup\n"
        "    properties: {count: 5000, resource_def: {type: a.yaml}}\n"
    )
    with pytest.raises(InvalidDescription, match="deep"):
        compile_template(Source(itself, files={"a.yaml": itself}))


def test_a_wide_expansion_ends() -> None:
    def level(below: str) -> str:
        return (
            "heat_template_version: wallaby\nresources:\n  g:\n"
            "    type: OS::Heat::ResourceGroup\n"
            f"    properties: {{count: 300, resource_def: {{type: {below}}}}}\n"
        )

    files = {f"l{i}.yaml": level(f"l{i + 1}.yaml") for i in range(3)}
    files["l3.yaml"] = "heat_template_version: wallaby\nresources: {}\n"
    with pytest.raises(InvalidDescription, match="expands to more"):
        compile_template(Source(level("l0.yaml"), files=files))


def test_a_template_without_servers_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="no server"):
        compile_template(Source("heat_template_version: wallaby\n"))


@given(st.text(max_size=40), st.integers(0, len(SHOP)))
def test_a_broken_template_is_never_anything_but_invalid(noise: str, at: int) -> None:
    text = SHOP[:at] + noise + SHOP[at + len(noise) :]
    with suppress(InvalidDescription):
        compile_template(Source(text, environment=ENVIRONMENT))


@given(st.integers(0, len(SHOP.splitlines()) - 1), st.integers(0, len(SHOP.splitlines()) - 1))
def test_nor_one_with_lines_moved_about(first: int, second: int) -> None:
    lines = SHOP.splitlines()
    lines[first], lines[second] = lines[second], lines[first]
    with suppress(InvalidDescription):
        compile_template(Source("\n".join(lines), environment=ENVIRONMENT))


@given(st.text(max_size=40), st.text(max_size=20))
def test_nor_a_broken_environment_or_parameter(environment: str, value: str) -> None:
    with suppress(InvalidDescription):
        compile_template(
            Source(SHOP, environment=environment, parameters={"network": "n", "flavors": value})
        )
