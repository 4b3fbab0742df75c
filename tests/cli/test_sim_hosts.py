"""Hosts of a simulation that fail and come back, and what becomes of a lease there."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

CREW = """\
name: crew
members: [{name: crew, count: 7, flavor: m1.xlarge}]
policies: [{name: one-per-host, type: anti-affinity, members: [crew], level: host}]
"""
PERIOD = ("--start", "2026-11-23T08:00Z", "--duration", "4d")


@pytest.fixture
def failing(offline: Any) -> Iterator[Any]:
    """A simulation of three racks of one's own."""
    offline.environment["OS_CLOUD"] = "failing"
    words = ("--fleet", "three-racks.yaml", "--now", "2026-11-21T09:00:00Z", "--name", "failing")
    started = offline("sim", "start", *words)
    assert started.status == 0, started
    yield offline
    assert offline("sim", "stop").status == 0


def until(lease: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    ends = time.monotonic() + 100
    while not good(found := lease()):
        assert time.monotonic() < ends, found
        time.sleep(0.1)
    return found


def test_a_lease_is_degraded_while_a_host_has_failed(failing: Any, tmp_path: Path) -> None:
    file = tmp_path / "crew.yaml"
    file.write_text(CREW, encoding="utf-8")
    made = failing("lease", "create", "-f", str(file), "--name", "crew", *PERIOD)
    assert made.status == 0, made
    assert failing("sim", "fail", "--host", "h7").out == "h7 is failed\n"
    assert failing("sim", "fail", "--host", "h7").out == "h7 is failed already\n"

    def lease() -> Any:
        return failing.body("lease", "show", "crew")["lease"]

    ill = until(lease, lambda one: one["proposal"] is not None)
    assert (ill["degraded"], ill["missing"], ill["guarantee"]) == (True, 1, "broken")
    assert ill["proposal"] == {"policy": "one-per-host", "max_per_domain": [1, 2]}
    shown = failing("lease", "show", "crew").out
    said = 'proposal      "one-per-host max_per_domain 1->2 places the 7th on h'
    assert re.search(rf'{said}\d" \(needs owner consent\)\n', shown), shown
    picked = failing("lease", "show", "crew", "-c", "status", "-c", "degraded", "-c", "claimed")
    assert re.fullmatch(r"pending  true  0/\d\n", picked.out), picked
    tenant = failing.as_tenant("admin")("lease", "show", "crew").out
    assert "h7" not in tenant
    assert failing("sim", "recover", "--host", "h7").out == "h7 is recovered\n"
    well = until(lease, lambda one: not one["degraded"])
    assert (well["missing"], well["proposal"]) == (0, None)


def test_there_must_be_such_a_host(failing: Any) -> None:
    told = failing("sim", "fail", "--host", "h99")
    assert (told.status, told.out) == (6, "")
    assert "no host called h99" in told.err
