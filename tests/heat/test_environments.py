"""Environments: several files, merge strategies, and what the registry says types mean."""

from collections.abc import Mapping

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template
from moorage.heat.file_names import file_name

SERVER = "type: OS::Nova::Server, properties: {flavor: f}"


def compiled(
    text: str, environments: Mapping[str, str], files: Mapping[str, str] | None = None
) -> CompiledTemplate:
    template = f"heat_template_version: wallaby\n{text}"
    return compile_template(
        Source(
            template,
            environment_files=tuple(environments),
            files={**environments, **(files or {})},
        )
    )


def flavors(one: CompiledTemplate) -> dict[str, str | None]:
    return {role.name: role.flavor for role in one.description.roles}


SHOWN = """\
parameters:
  value: {{type: {kind}, default: {default}}}
resources:
  s:
    type: OS::Nova::Server
    properties: {{flavor: {{str_replace: {{template: v, params: {{v: {{get_param: value}}}}}}}}}}
"""


@pytest.mark.parametrize(
    ("kind", "strategy", "first", "second", "result"),
    [
        ("string", "overwrite", "a", "b", "b"),
        ("string", "merge", "a", "b", "ab"),
        ("number", "merge", "'1'", "'2'", "12"),
        ("comma_delimited_list", "merge", "'a,b'", "c", '["a", "b", "c"]'),
        ("comma_delimited_list", "merge", "[a]", "[b]", '["a", "b"]'),
        ("json", "merge", "{a: {x: 1}, b: 1}", "{a: {y: 2}}", '{"a": {"y": 2}, "b": 1}'),
        ("json", "deep_merge", "{a: {x: 1}}", "{a: {y: 2}}", '{"a": {"x": 1, "y": 2}}'),
        ("json", "deep_merge", "{a: [1], b: x}", "{a: [2], b: y}", '{"a": [1, 2], "b": "xy"}'),
    ],
)
def test_values_of_several_files_are_merged(
    kind: str, strategy: str, first: str, second: str, result: str
) -> None:
    default = {"json": "{}", "number": "0"}.get(kind, "''")
    said = f"parameter_merge_strategies: {{value: {strategy}}}\n"
    one = compiled(
        SHOWN.format(kind=kind, default=default),
        {
            "a.yaml": f"{said}parameters: {{value: {first}}}",
            "b.yaml": f"{said}parameters: {{value: {second}}}",
        },
    )
    assert flavors(one) == {"s": result}


def test_strategies_may_not_contradict_each_other() -> None:
    with pytest.raises(InvalidDescription, match="earlier environment") as caught:
        compiled(
            SHOWN.format(kind="string", default="''"),
            {
                "a.yaml": "parameters: {value: a}",
                "b.yaml": "parameters: {value: b}\nparameter_merge_strategies: {value: merge}",
            },
        )
    assert caught.value.path == "b.yaml.parameters.value"


def test_environment_files_win_over_the_call_and_that_is_noted() -> None:
    text = "heat_template_version: wallaby\n" + SHOWN.format(kind="string", default="''")
    files = {"e.yaml": "parameters: {value: b}"}
    one = compile_template(
        Source(text, environment_files=("e.yaml",), parameters={"value": "a"}, files=files)
    )
    assert flavors(one) == {"s": "b"}
    assert "wins over the value of the call" in one.notes[0]
    alone = compile_template(Source(text, files["e.yaml"], parameters={"value": "a"}))
    assert flavors(alone) == {"s": "a"}


def test_a_missing_environment_is_named() -> None:
    source = Source("heat_template_version: wallaby\n", environment_files=("e.yaml",))
    with pytest.raises(InvalidDescription, match=r"e\.yaml is missing"):
        compile_template(source)


POD = f"heat_template_version: wallaby\nresources: {{in: {{{SERVER}}}}}\n"
ODD = POD.replace("flavor: f", "flavor: g")


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("{'OS::Nova::Server': pod.yaml}", {"a/in": "f", "b/in": "f"}),
        ("{'OS::Nova::*': pod.yaml}", {"a/in": "f", "b/in": "f"}),
        ("{'OS::N*': 'My::N*', 'My::Nova::Server': pod.yaml}", {"a/in": "f", "b/in": "f"}),
        ("{resources: {a: {'OS::Nova::Server': odd.yaml}}}", {"a/in": "g", "b": "f"}),
        (
            "{'OS::Nova::Server': pod.yaml, resources: {b: {'OS::Nova::Server': odd.yaml}}}",
            {"a/in": "f", "b/in/in": "f"},
        ),
        (
            "{resources: {a: {hooks: pre-create, restricted_actions: [update]}}}",
            {"a": "f", "b": "f"},
        ),
        ("{base_url: lib, 'OS::Nova::Server': deep.yaml}", {"a/in": "g", "b/in": "g"}),
        ("{'OS::Nova::Server': null}", {"a": "f", "b": "f"}),
    ],
)
def test_the_registry_says_what_a_type_means(registry: str, expected: dict[str, str]) -> None:
    one = compiled(
        f"resources: {{a: {{{SERVER}}}, b: {{{SERVER}}}}}",
        {"e.yaml": f"resource_registry: {registry}"},
        {
            "pod.yaml": no_properties(POD),
            "odd.yaml": no_properties(ODD),
            "lib/deep.yaml": no_properties(ODD),
        },
    )
    assert flavors(one) == expected


def no_properties(template: str) -> str:
    """The template, which takes the properties of the server that it stands for."""
    return template + "parameters: {flavor: {type: string}}\n"


def test_types_may_be_mapped_to_nothing() -> None:
    one = compiled(
        f"resources: {{a: {{{SERVER}}}, n: {{type: OS::Neutron::Net}}, x: {{type: My::Thing}}}}",
        {"e.yaml": "resource_registry: {'My::*': OS::Heat::None}"},
    )
    assert [one.type for one in one.unplaced] == ["OS::Neutron::Net", "OS::Heat::None"]


def test_an_entry_may_be_for_a_resource_inside_a_nested_stack() -> None:
    one = compiled(
        "resources: {a: {type: pod.yaml}, b: {type: pod.yaml}}",
        {"e.yaml": "resource_registry: {resources: {a: {in: {'OS::Nova::Server': odd.yaml}}}}"},
        {"pod.yaml": POD, "odd.yaml": no_properties(ODD)},
    )
    assert flavors(one) == {"a/in/in": "g", "b/in": "f"}


def test_names_in_an_environment_are_relative_to_it() -> None:
    one = compiled(
        "resources: {a: {type: My::Pod}}",
        {"envs/e.yaml": "resource_registry: {'My::Pod': ../lib/pod.yaml}"},
        {"lib/pod.yaml": POD},
    )
    assert flavors(one) == {"a/in": "f"}


def test_files_may_have_the_names_that_the_client_of_heat_gives_them() -> None:
    url = "file:///home/me/pods"
    one = compiled(
        f"resources: {{a: {{type: '{url}/pod.yaml'}}, b: {{type: My::Pod}}}}",
        {f"{url}/e.yaml": f"resource_registry: {{'My::Pod': '{url}/lib/odd.yaml'}}"},
        {
            f"{url}/pod.yaml": POD.replace("OS::Nova::Server", f"'{url}/lib/one.yaml'"),
            f"{url}/lib/one.yaml": no_properties(POD),
            f"{url}/lib/odd.yaml": ODD,
        },
    )
    assert flavors(one) == {"a/in/in": "f", "b/in": "g"}


@pytest.mark.parametrize(
    ("written", "of", "name"),
    [
        ("pod.yaml", "", "pod.yaml"),
        ("../pod.yaml", "lib/a.yaml", "pod.yaml"),
        ("file:///x/pod.yaml", "lib/a.yaml", "file:///x/pod.yaml"),
        ("pod.yaml", "file:///x/a.yaml", "file:///x/pod.yaml"),
        ("../pod.yaml", "http://h/x/y/a.yaml", "http://h/x/pod.yaml"),
        ("/pod.yaml", "http://h/x/y/a.yaml", "http://h/pod.yaml"),
    ],
)
def test_a_name_is_relative_to_the_file_that_it_is_in(written: str, of: str, name: str) -> None:
    assert file_name(written, of=of) == name


def test_entries_for_a_group_inside_a_group_are_below_those_of_the_outer_one() -> None:
    template = (
        "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: 2, index_var: '%o%',"
        " resource_def: {type: OS::Heat::ResourceGroup, properties: {count: 2,"
        " resource_def: {type: My::A, properties: {flavor: a}}}}}}}\n"
    )
    env = "resource_registry: {'My::*': OS::Heat::None, resources: {g: {'0': {'1': {"
    found = compiled(template, {"env": env + "'My::A': OS::Nova::Server}}}}}"})
    assert list(found.keys.values()) == ["g/0/1"]


def test_of_a_key_written_twice_the_last_value_counts_and_that_is_told() -> None:
    template = (
        f"parameters: {{f: {{type: string}}}}\nresources: {{a: {{{SERVER}}}, b: {{type: T}}}}"
    )
    template = template.replace("{flavor: f}", "{flavor: {get_param: f}}")
    env = "resource_registry: {T: X}\nparameters: {f: one, f: two}\nresource_registry: {T: NONE}"
    env = env.replace("NONE", "OS::Heat::None")
    found = compiled(template, {"env": env})
    assert flavors(found) == {"a": "two"}
    twice = "is written twice; the last value counts, as for Heat"
    assert found.notes == (
        f"env.parameters (line 2): the key 'f' {twice}",
        f"env (line 3): the key 'resource_registry' {twice}",
    )
