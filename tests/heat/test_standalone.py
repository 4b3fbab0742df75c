"""What is emitted stands alone: without environment, and with every server knowing its name."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template
from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
from moorage.heat.placed_template import EmittedTemplate, prepare
from moorage.heat.resources import os_nova_server
from moorage.heat.standalone_template import output_names
from moorage.heat.template_writer import TemplateDecision

SERVER = {"type": "OS::Nova::Server", "properties": {"flavor": {"get_param": "size"}}}
GROUPS = {
    "OS::Heat::ResourceGroup": ("resource_def", "count"),
    "OS::Heat::AutoScalingGroup": ("resource", "min_size"),
}


def written_with(source: Source) -> tuple[CompiledTemplate, EmittedTemplate]:
    compiled = compile_template(source)
    places = {name: {"rack": "r"} for name in compiled.keys}
    return compiled, prepare(source, compiled).with_decision(TemplateDecision("e", "d", places))


def text_of(template: dict[str, Any]) -> str:
    return yaml.safe_dump({"heat_template_version": "wallaby", **template}, sort_keys=False)


def group(kind: str, count: object, member: dict[str, Any]) -> dict[str, Any]:
    definition, size = GROUPS[kind]
    most = {"max_size": 9} if size == "min_size" else {}
    return {"type": kind, "properties": {size: count, **most, definition: member}}


LEAF = st.sampled_from([SERVER, {**SERVER, "type": "My::Server"}])
COUNTS = st.sampled_from([0, 1, 2, {"get_param": "count"}])


def grouped(member: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(group, st.sampled_from(list(GROUPS)), COUNTS, member)


def stack(*files: str) -> st.SearchStrategy[Any]:
    """Resources that may be servers, nested templates of these names, or groups of either."""
    nested = st.sampled_from([{"type": file} for file in files]) if files else st.nothing()
    one = LEAF | nested
    resources = st.dictionaries(
        st.sampled_from(["a", "b-1", "c_2"]), one | grouped(one), min_size=1, max_size=3
    )
    parameters = st.fixed_dictionaries(
        {},
        optional={
            "size": st.just({"type": "string", "default": "m1.own"}),
            "count": st.just({"type": "number", "default": 1}),
        },
    )
    return st.builds(
        lambda found, said: {"parameters": BARE | said, "resources": found}, resources, parameters
    )


BARE = {"size": {"type": "string"}, "count": {"type": "number"}}
TREES = st.fixed_dictionaries(
    {
        "": stack("lib/mid.yaml", "My::Mid", "leaf.yaml"),
        "lib/mid.yaml": stack("../leaf.yaml", "My::Leaf"),
        "leaf.yaml": stack(),
    }
)
ENVIRONMENTS = st.fixed_dictionaries(
    {
        "parameter_defaults": st.fixed_dictionaries(
            {
                "size": st.sampled_from(["m1.small", "1", "2026-11-21"]),
                "count": st.sampled_from([1, "2"]),
            }
        ),
        "resource_registry": st.fixed_dictionaries(
            {
                "My::Server": st.sampled_from(["OS::Nova::Server", "My::Other"]),
                "My::Other": st.just("OS::Nova::Server"),
                "My::Mid": st.just("lib/mid.yaml"),
                "My::Leaf": st.just("leaf.yaml"),
            }
        ),
    },
    optional={
        "parameters": st.fixed_dictionaries(
            {},
            optional={
                "size": st.sampled_from(["m1.large", None]),
                "count": st.sampled_from([0, 2, None]),
            },
        )
    },
)


@pytest.fixture(scope="module")
def said() -> Iterator[dict[str, str]]:
    """Every server that is expanded, with what its metadata says."""
    found: dict[str, str] = {}
    own: Callable[..., Iterator[ExpandedItem]] = os_nova_server.expand

    def listening(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
        metadata = (
            resource.properties["metadata"].plain() if "metadata" in resource.properties else {}
        )
        assert isinstance(metadata, dict)
        found[str(resource.path)] = str(metadata.get("moorage:member"))
        yield from own(resource, nested)

    patch = pytest.MonkeyPatch()
    patch.setattr(os_nova_server, "expand", listening)
    yield found
    patch.undo()


@given(TREES, ENVIRONMENTS, st.dictionaries(st.just("count"), st.sampled_from(["1", 2])))
def test_a_tree_needs_no_environment_once_it_is_written(
    said: dict[str, str],
    tree: dict[str, Any],
    environment: dict[str, Any],
    parameters: dict[str, Any],
) -> None:
    files = {name: text_of(template) for name, template in tree.items()}
    source = Source(files.pop(""), yaml.safe_dump(environment), parameters=parameters, files=files)
    try:
        compiled, written = written_with(source)
    except InvalidDescription as error:
        if error.message == "the template has no server to place" or "does not tell" in str(error):
            return
        raise
    said.clear()
    again, rewritten = written_with(Source(written.template, files=written.files))
    assert again == compiled
    assert rewritten == written, "the same decision, written again, changes nothing"
    for member, path in compiled.keys.items():
        assert said[path] == (member.role if member.role in compiled.scaling else str(member)), path


def test_names_are_handed_down_through_groups_and_nested_templates(said: dict[str, str]) -> None:
    leaf = text_of(
        {"resources": {"s": {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}}}
    )
    mid = text_of(
        {
            "resources": {
                "one": {"type": "../leaf.yaml"},
                "some": group("OS::Heat::ResourceGroup", 2, {"type": "../leaf.yaml"}),
                "more": group(
                    "OS::Heat::ResourceGroup",
                    1,
                    {"type": "OS::Nova::Server", "properties": {"flavor": "f"}},
                ),
            }
        }
    )
    root = text_of(
        {
            "resources": {
                "pod": group("OS::Heat::ResourceGroup", 2, {"type": "lib/mid.yaml"}),
                "lone": {"type": "lib/mid.yaml"},
                "scaled": group("OS::Heat::AutoScalingGroup", 1, {"type": "leaf.yaml"}),
            }
        }
    )
    _, written = written_with(Source(root, files={"leaf.yaml": leaf, "lib/mid.yaml": mid}))
    assert set(written.files) == {"leaf.yaml", "lib/mid.yaml"}
    said.clear()
    again = compile_template(Source(written.template, files=written.files))
    assert {path: said[path] for path in again.keys.values() if "scaled" not in path} == {
        path: str(member) for member, path in again.keys.items() if "scaled" not in path
    }
    assert said["pod/1/some/0/s"] == "pod/1/some/s[0]"
    assert said["pod/1/one/s"] == "pod/one/s[1]"
    assert said["scaled/0/s"] == "scaled/s", "any of the role: Heat tells it no number"


def test_hidden_values_are_not_written_and_that_is_told() -> None:
    template = text_of(
        {
            "parameters": {"word": {"type": "string", "hidden": True, "default": "none"}},
            "resources": {"s": {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}},
        }
    )
    source = Source(template, "parameter_defaults: {word: sesame}")
    emission = prepare(source, compile_template(source))
    assert "word is hidden" in emission.notes[0]
    written = emission.with_decision(
        TemplateDecision("e", "d", {m: {} for m in compile_template(source).keys})
    )
    assert "sesame" not in written.template


@pytest.mark.parametrize(
    ("resource", "environment", "path"),
    [
        (
            {"type": "n.yaml", "properties": {"get_param": "all"}},
            "{}",
            "resources.r.properties",
        ),
        (
            group("OS::Heat::ResourceGroup", 1, {"type": {"get_param": "kind"}}),
            "resource_registry: {My::Server: n.yaml}",
            "resources.r.properties.resource_def.type",
        ),
    ],
)
def test_what_cannot_be_written_names_its_place(
    resource: dict[str, Any], environment: str, path: str
) -> None:
    template = text_of(
        {
            "parameters": {
                "all": {"type": "json", "default": {}},
                "kind": {"type": "string", "default": "n.yaml"},
            },
            "resources": {"r": resource},
        }
    )
    nested = text_of(
        {"resources": {"s": {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}}}
    )
    source = Source(template, environment, files={"n.yaml": nested})
    compiled = compile_template(source)
    with pytest.raises(InvalidDescription, match="function computes") as caught:
        prepare(source, compiled)
    assert caught.value.path == path
    assert caught.value.line


def test_files_stay_inside_and_apart() -> None:
    assert output_names(["a.yaml", "../a.yaml", "/lib/../b.yaml", "lib/b.yaml"]) == {
        "a.yaml": "a.yaml",
        "lib/b.yaml": "lib/b.yaml",
        "../a.yaml": "2-a.yaml",
        "/lib/../b.yaml": "2-lib/b.yaml",
    }


def test_templates_from_above_are_written_beside() -> None:
    server = text_of(
        {"resources": {"s": {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}}}
    )
    middle = text_of({"resources": {"m": {"type": "../deep/leaf.yaml"}}})
    root = text_of({"resources": {"r": {"type": "../lib/mid.yaml"}}})
    source = Source(root, files={"../lib/mid.yaml": middle, "../deep/leaf.yaml": server})
    compiled, written = written_with(source)
    assert set(written.files) == {"lib/mid.yaml", "deep/leaf.yaml"}
    assert compile_template(Source(written.template, files=written.files)) == compiled
