"""`moorage whatif` and `moorage survivability` over a running simulation."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

APART = """
name: watch
members: [{name: eye, count: 2, resources: {VCPU: 1}, min_available: 2}]
policies: [{name: apart, type: anti-affinity, members: [eye], level: rack}]
"""


@pytest.fixture
def watch(sim: Any, tmp_path: Path) -> Any:
    file = tmp_path / "watch.yaml"
    file.write_text(APART, encoding="utf-8")
    made = sim.body("ensemble", "create", "-f", str(file), "--hold", "10m")
    yield made["ensemble"]["id"]
    sim("ensemble", "delete", made["ensemble"]["id"])


def test_changes_are_supposed_in_their_order(sim: Any, watch: str, tmp_path: Path) -> None:
    file = tmp_path / "watch.yaml"
    shown = sim(
        *("whatif", "--close", "h1", "--add", "2xh2@rack/r1", "--admit", str(file)),
        *("--policy", f"{watch}:apart:max_per_domain=2", "--flavor", "m1.small"),
    )
    assert shown.status == 0, shown
    lines = shown.out.splitlines()
    assert lines[:2] == ["closed: 1 host, h1", "added: 2 hosts, new-1, new-2"]
    assert any(line.startswith("watch fits: eye[0] ") for line in lines)
    assert "m1.small" in shown.out
    body = sim.body("whatif", "--policy", f"{watch}:apart:level=host", "--lose", "rack/r1")
    assert body["simulation"]["down"] == ["h1", "h2", "h3"]


def test_several_fields_of_one_policy_are_one_change(sim: Any, watch: str) -> None:
    fields = ("type=affinity", "members=[eye]", "level=rack")
    words = [word for one in fields for word in ("--policy", f"{watch}:near:{one}")]
    refused = sim("whatif", *words)
    assert refused.status == 3
    assert "contradiction" in refused.err


def test_survivability_names_the_worst(sim: Any, watch: str) -> None:
    shown = sim("survivability")
    assert shown.status == 0, shown
    assert "watch eye keeps 1 of 2, needs 2" in shown.out
    found = sim.body("survivability", "--lose", "2")["survivability"]
    assert (found["lose"], found["considered"]) == (2, 3)
    assert sim.body("survivability", "--domains", "r1,r2")["survivability"]["considered"] == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("whatif",), 2, "give --lose, --close, --add, --admit or --policy"),
        (("whatif", "--add", "h3"), 2, "write COUNTxHOST@DOMAIN, such as 4xh3@rack/r9"),
        (("whatif", "--policy", "shop:keep=1"), 2, "write ENSEMBLE:POLICY:FIELD=VALUE"),
        (("whatif", "--admit", "nothing.yaml"), 1, "nothing.yaml: no such file"),
        (("whatif", "--lose", "h99"), 1, "no such host or domain: h99"),
        (("survivability", "--level", "rak"), 1, "no such level: rak; did you mean rack?"),
        (("survivability", "--lose", "7"), 1, "lose is 1 or 2, not 7"),
    ],
)
def test_bad_input_is_refused(sim: Any, words: tuple[str, ...], status: int, said: str) -> None:
    refused = sim(*words)
    assert (refused.status, said in refused.err) == (status, True), refused


def test_tenants_may_not(sim: Any) -> None:
    refused = sim.as_tenant("project-a")("survivability")
    assert refused.status == 5, refused
