"""Growing and shrinking an ensemble by commands, over a running simulation of three racks."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

WEB = """\
name: {name}
members: [{{name: web, count: 2, flavor: m1.small}}]
policies: [{{name: apart, type: anti-affinity, members: [web], level: host}}]
"""


@pytest.fixture
def web(sim: Any, tmp_path: Path) -> Iterator[str]:
    """A small ensemble that is placed and held; its name."""
    name = f"web-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "web.yaml"
    file.write_text(WEB.format(name=name), encoding="utf-8")
    assert sim("ensemble", "create", "-f", str(file), "--hold", "30m").status == 0
    yield name
    sim("ensemble", "delete", name, "--yes")


def test_an_ensemble_grows_and_shrinks(sim: Any, web: str) -> None:
    dry = sim("ensemble", "extend", web, "--role", "web", "--size", "4", "--dry-run")
    assert dry.out.startswith("web[2-3] would come  verdict feasible"), dry
    made = sim("ensemble", "extend", web, "--role", "web", "--size", "4")
    assert made.out.startswith("web[2-3] new  decision "), made
    again = sim("ensemble", "extend", web, "--role", "web", "--size", "4")
    assert again.out == "unchanged: it has so many members\n"
    sizes = sim("ensemble", "extend", web, "--sizes", "web=4")
    assert sizes.out == again.out
    gone = sim("ensemble", "shrink", web, "--roles", "web=1", "--prefer", "web[0]")
    assert gone.out.startswith("removed 1: web[0]\nweb: "), gone
    refused = sim("ensemble", "extend", web, "--role", "web", "--count", "40")
    assert (refused.status, "apart" in refused.err + refused.out) == (3, True), refused


def test_who_leaves_may_be_named_as_the_topology_names_it(sim: Any, web: str) -> None:
    rows = sim("ensemble", "topology", web).out.split()
    dry = sim(
        "ensemble", "shrink", web, "--role", "web", "--count", "1", "--dry-run", "--prefer", rows[0]
    )
    assert dry.out.startswith("would remove 1: web[0]\n"), dry
    wrong = sim("ensemble", "shrink", web, "--role", "web", "--count", "1", "--prefer", "web-0")
    assert wrong.status == 6
    assert "web-0" in wrong.err


def test_headroom_is_set_and_shown(sim: Any, web: str) -> None:
    words = ("ensemble", "headroom", web, "--role", "web", "--count")
    assert sim(*words, "2", "--dry-run").out == "headroom would be web 2\n"
    assert sim(*words, "2").out == "headroom web 2\n"
    assert "headroom    web 2\n" in sim("ensemble", "show", web).out
    taken = sim("ensemble", "extend", web, "--role", "web", "--count", "1")
    assert "taken from headroom 1" in taken.out
    assert sim(*words, "0").out == "headroom none\n"


def test_the_racks_are_told_to_software(sim: Any, web: str) -> None:
    lines = sim("ensemble", "topology", web).out.splitlines()
    assert [line.partition(" /")[0] for line in lines] == [f"{web}-web-0", f"{web}-web-1"]
    told = json.loads(sim("ensemble", "topology", web, "-f", "json").out)["topology"]
    assert [one["member"] for one in told] == ["web[0]", "web[1]"]
    assert [f"{one['name']} /{one['domain']}" for one in told] == lines
    zones = sim("ensemble", "topology", web, "--level", "zone").out
    assert zones.count("/az1") == 2
    assert sim("ensemble", "topology", web, "--level", "row").status == 6


@pytest.mark.parametrize(
    "words",
    [
        ("extend", "--role", "web"),
        ("extend", "--role", "web", "--count", "1", "--size", "2"),
        ("extend", "--roles", "web=1", "--count", "1"),
        ("extend", "--roles", "web"),
        ("extend", "--roles", "web=1", "--roles", "web=2"),
        ("extend", "--sizes", "web=1", "--roles", "web=2"),
        ("shrink", "--sizes", "web=1", "--size", "2"),
        ("shrink", "--count", "1"),
        ("headroom", "--role", "web"),
    ],
)
def test_wrong_usage(sim: Any, words: tuple[str, ...]) -> None:
    assert sim("ensemble", words[0], "shop", *words[1:]).status == 2
