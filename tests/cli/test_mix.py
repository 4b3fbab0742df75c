"""`moorage mix`, and what a decision records of it, over a running simulation."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

MIX = """
shapes:
  - {flavor: m1.xlarge, weight: 7}
  - {resources: {VCPU: 2}, required: [[COMPUTE_NODE, HW_CPU_X86_AVX2]], forbidden: [HW_CPU_X86_SSE]}
"""


def test_a_mix_is_stated_weighed_and_reset(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "mix.yaml"
    file.write_text(MIX, encoding="utf-8")
    dry = sim("mix", "set", str(file), "--dry-run")
    assert dry.status == 0, dry
    assert sim("mix", "show").out.startswith("mix: counted from the ledger\n")
    told = sim("mix", "set", str(file)).out
    assert told.startswith("mix: stated at ")
    assert "m1.xlarge" in told
    assert "COMPUTE_NODE|HW_CPU_X86_AVX2 !HW_CPU_X86_SSE" in told
    file.write_text(json.dumps(sim.body("mix", "show")), encoding="utf-8")
    again = sim.body("mix", "set", str(file))["request_mix"]
    assert again["shapes"][0]["resources"]["VCPU"] == 8
    made = sim.body("ensemble", "create", "--server", "m1.xlarge", "--count", "2", "--hold", "10m")
    shown = sim("decision", "show", made["decision"]["id"], "--record").out
    assert "room for others: " in shown
    assert "2 shapes weighed, the mix stated" in shown
    assert "room for others" not in sim("decision", "show", made["decision"]["id"]).out
    sim("ensemble", "delete", made["ensemble"]["id"])
    assert sim("mix", "reset").out == "the mix is counted from the ledger\n"
    assert sim.body("mix", "show")["request_mix"]["source"] == "ledger"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "a mix is a list `shapes`"),
        ("shapes: 3", "a mix is a list `shapes`"),
        ("shapes: [3]", "a shape has a weight, and a flavor or resources"),
        ("shapes: [{flavor: nope}]", "no such flavor: nope"),
        ("shapes: []", "shapes"),
    ],
)
def test_what_is_no_mix_is_refused(text: str, said: str, sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "mix.yaml"
    file.write_text(text, encoding="utf-8")
    refused = sim("mix", "set", str(file))
    assert refused.status == 1, refused
    assert said in refused.err
