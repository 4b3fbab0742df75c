"""The one format of fleets: its schema, what it had been, other sections, and hostile files."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.client.fleet_file import LIMITS, read_fleet, read_places
from moorage.client.fleet_schema import SCHEMA
from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet_expansion import expand, provider_uuid
from moorage.heat.yaml_tree import parse

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "fleets").glob("*.yaml")), ROOT / "examples" / "racks.yaml"]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_shipped_is_of_the_schema(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    VALIDATOR.validate(parse(text).plain())
    read_fleet(text)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([0, 1, 2.5, True, "a", "h{n}", "VCPU", "", None]),
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["name", "count", "total", "in", "on", "seed", "place", "levels", "VCPU", "odd"]
            ),
            below,
            max_size=3,
        )
    ),
    max_leaves=8,
)
SECTIONS = st.dictionaries(
    st.sampled_from([*SCHEMA["properties"], "racks"]), VALUES | st.lists(VALUES, max_size=2)
)


@given(SECTIONS)
def test_what_is_read_is_of_the_schema_and_nothing_else_happens(document: dict[str, Any]) -> None:
    try:
        expand(read_fleet(json.dumps(document)))
    except InvalidDescription:
        return
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("levels: {location: [rack]}\ndomains: []\n", "topology: {TREE: {levels"),
        ("topology: {levels: {location: [rack]}, domains: []}\n", "topology: {TREE: {levels"),
        ("topology: {}\nattachments: [{host: a, domain: b}]\n", "place: {TREE: DOMAIN}"),
        ("topology:\n  levels: {location: []}\n  revision: 3\n", "fleet export --topology"),
    ],
    ids=["a-topology-file", "as-the-api-has-it", "a-mapping", "as-it-was-shown"],
)
def test_the_formats_of_before_are_refused_with_the_new_spelling(text: str, told: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        read_fleet(text)
    assert told in refused.value.message
    assert refused.value.line is not None


def test_a_tree_may_be_called_as_a_former_section_was() -> None:
    assert read_fleet("topology: {levels: {levels: [rack]}}\n").levels == {"levels": ("rack",)}


B = f"inventories: {{}}, uuid: {provider_uuid('b')}"
CYCLE = """
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: a, level: zone, parent: b}
      - {name: b, level: rack, parent: a}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts: [{name: a, inventorys: {}}]", "did you mean 'inventories'"),
        ("topolgy: {}", "did you mean 'topology'"),
        ("hosts: [{name: a, traits: []}]", "'traits' needs the key 'inventories'"),
        ("hosts: [{name: a, inventories: {}, uuid: x}]", "not of the form"),
        ("load: [{name: a}]", "on, allocations, seed"),
        ("load: [{name: a, on: h}]", "resources, flavor"),
        ("load: [{name: a, on: h, flavor: f, resources: {VCPU: 1}}]", "resources, flavor"),
        ("load: [{name: a, allocations: {}}]", "at least one"),
        ("load: [{name: a, allocations: {h: {VCPU: 1}}, project: p, project_id: q}]", "by its id"),
        ("load: [{name: a, on: nowhere, resources: {VCPU: 1}}]", "nowhere"),
        ("load: [{name: a, on: h, flavor: f}]\nhosts: [{name: h, inventories: {}}]", "flavor: f"),
        ("sharing: [{name: a, inventories: {}, aggregates: [], count: no}]", "whole number"),
        ("hosts: 5", "a list is needed here"),
        ("7", "a mapping is needed here"),
        ("unplaced: perhaps", "none of allow, refuse"),
        ("revision: -1", "must be between"),
        ("topology: {location: {levels: []}}", "at least 1"),
        (
            "topology: {t: {levels: [rack], domains: [{name: a, level: rack, order: turn}]}}",
            "'order' needs the key 'parent'",
        ),
        (CYCLE, "cycles are not possible"),
        (
            "hosts: [{name: h, inventories: {VCPU: 4}}]\nload:\n"
            + "  - {name: a, on: h, resources: {VCPU: 1}}\n" * 2,
            "load a: its consumers are declared twice",
        ),
        ("flavors:\n" + "  - {name: f, resources: {VCPU: 1}}\n" * 2, "flavor f is declared twice"),
        ("hosts: [{name: a, inventories: {}}, {name: a, inventories: {}}]", "declared twice"),
        (
            "hosts: [{name: a, inventories: {}, children: [{name: b}, {name: b}]}]",
            "declared twice",
        ),
        (f"hosts: [{{name: a, {B}}}, {{name: b, inventories: {{}}}}]", "the same UUID"),
        (f"hosts: [{{name: 'a{{n}}', count: 2, {B}}}]", "a provider with a UUID is one"),
    ],
)
def test_bad_files_are_told_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        expand(read_fleet(text))
    assert told in str(refused.value), refused.value


def test_a_host_that_is_there_has_a_place_only() -> None:
    text = """
topology: {location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}}
hosts:
  - {name: "n{n}", count: 4, place: {location: [r1, r2]}}
  - {name: "nova compute (left)", place: {location: r1}}
"""
    fleet = expand(read_fleet(text))
    assert fleet.providers == ()
    assert fleet.topology.attachments == {
        ("location", "n1"): "r1",
        ("location", "n2"): "r1",
        ("location", "n3"): "r2",
        ("location", "n4"): "r2",
        ("location", "nova compute (left)"): "r1",
    }


def test_rules_place_the_hosts_of_the_file_that_have_no_place() -> None:
    text = """
topology: {location: {levels: [rack]}}
hosts:
  - {name: "r1-n{n}", count: 2, inventories: {VCPU: 1}, aggregates: [gold]}
  - {name: odd, inventories: {VCPU: 1}, place: {location: r1}}
rules:
  - {name: '(?P<rack>r.)-.*', aggregate: gold}
  - {name: 'odd', rack: r7}
"""
    topology = expand(read_fleet(text)).topology
    assert {(host, rack) for (_, host), rack in topology.attachments.items()} == {
        ("r1-n1", "r1"),
        ("r1-n2", "r1"),
        ("odd", "r1"),
    }


def test_places_need_a_tree() -> None:
    with pytest.raises(InvalidDescription, match="no section 'topology'"):
        read_places("hosts: []")


def test_one_consumer_may_take_from_several_providers() -> None:
    text = """
hosts:
  - name: n1
    inventories: {MEMORY_MB: 64}
    aggregates: [a]
    children: [{name: numa, inventories: {VCPU: 4}}]
sharing: [{name: nfs, inventories: {DISK_GB: 10}, aggregates: [a]}]
load:
  - {name: web, allocations: {n1: {MEMORY_MB: 8}, n1/numa: {VCPU: 4}, nfs: {DISK_GB: 1}}}
"""
    (load,) = expand(read_fleet(text)).load
    assert {sum(amounts.values()) for amounts in load.allocations.values()} == {8, 4, 1}
    with pytest.raises(InvalidDescription, match="does not fit on n1/numa, 0 free"):
        expand(read_fleet(text + "  - {name: more, on: n1/numa, resources: {VCPU: 1}}\n"))


# --- hostile files --------------------------------------------------------------------------


def bounded(text: str) -> str:
    """The message of the refusal, which comes in time."""
    before = time.thread_time()
    with pytest.raises(InvalidDescription) as refused:
        expand(read_fleet(text))
    assert time.thread_time() - before < 60
    return refused.value.message


def test_aliases_do_not_multiply() -> None:
    lines = ["hosts:", "  - &a0 {name: a, inventories: {VCPU: 1}}"]
    lines += [f"  - &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "aliases expanded" in bounded("\n".join(lines))


def test_counts_do_not_multiply() -> None:
    text = "hosts:\n  - name: a\n    inventories: {}\n"
    for depth in range(1, 9):
        indent = "  " * (2 * depth)
        text += f"{indent}children:\n{indent}  - name: 'c{{n}}'\n{indent}    count: 1000\n"
    assert "more than 200000" in bounded(text)


def test_a_file_of_a_million_lines_is_refused_before_it_is_read_whole() -> None:
    text = "load:\n" + "  - {name: a, on: h, resources: {VCPU: 1}}\n" * 1_000_000
    assert bounded(text) in {
        f"longer than {LIMITS.text} characters",
        f"more than {LIMITS.nodes} values (aliases expanded)",
    }


def test_a_deep_file_is_refused() -> None:
    depth = 100
    text = "hosts: [{name: a, inventories: {}, children: " + "[{name: b, children: " * depth
    assert "deep" in bounded(text + "[]" + "}]" * (depth + 1))


@given(st.text(alphabet="hosts:{}[]-&*a \n\"'%", max_size=80))
def test_noise_is_invalid(text: str) -> None:
    with suppress(InvalidDescription):
        read_fleet(text)
