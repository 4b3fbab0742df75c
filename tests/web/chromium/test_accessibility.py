"""Every screen, in both themes and on a phone, without a violation that axe-core finds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.web.chromium.conftest import SHOP, Sim, Tab, simulation

pytestmark = pytest.mark.process
AXE = Path(__file__).parents[3] / ".cache/axe/axe.min.js"
SIZES = {"desk": (1280, 900), "phone": (390, 800)}


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    return filled(state, "axe")


def filled(state: Path, name: str) -> Sim:
    """A simulation with something on every screen."""
    made = simulation(state, name)
    for shop in ("shop", "refused"):
        file = state / f"{shop}.yaml"
        file.write_text(SHOP.format(name=shop), encoding="utf-8")
        made.cli("ensemble", "create", "-f", str(file), "--hold", "4h")
    made.cli("host", "close", "h1", "--reason", "test")
    period = ("--start", "2026-11-22T00:00Z", "--end", "2026-11-23T00:00Z")
    for lease, flavor, more in (("batch", "m1.small", ()), ("big", "m1.2xlarge", ("--wait",))):
        words = ("--flavor", flavor, "--count", "9", "--name", lease, *period, *more)
        made.cli("lease", "create", *words)
    made.cli("capacity", "window", "create", "--host", "h2", "--down", "2026-11-24T00:00Z/24h")
    return made


def paths(home: Sim) -> list[str]:
    ensemble = home.cli.body("ensemble", "list")["ensembles"][0]["id"]
    refusal = home.cli.body("explanation", "list")["explanations"][0]["id"]
    return [
        "/fleet",
        "/fleet?host=h1&flavor=m1.xlarge",
        "/fleet?as=table",
        "/applications",
        f"/applications/{ensemble}?lose=r1",
        "/place",
        "/calendar?from=2026-11-21T00:00:00Z",
        "/calendar?away=h3",
        "/violations?state=all",
        "/waiting",
        "/refusals",
        "/whatif?lose=rack/r2",
        "/plans",
        f"/why/{refusal}",
        "/nowhere",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_screen_has_a_fault(
    home: Sim, open_tab: Callable[..., Tab], scheme: str, size: str
) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: .ci/axe packs it")
    wide, high = SIZES[size]
    size_of = {"width": wide, "height": high}
    # axe-core writes styles of its own into the page, which the page itself may not.
    tab = open_tab(home, viewport=size_of, color_scheme=scheme, bypass_csp=True)
    found: dict[str, Any] = {}
    for path in paths(home):
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.wait_for_timeout(500)
        tab.page.evaluate(AXE.read_text(encoding="utf-8"))
        result = tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for one in result["violations"]:
            found.setdefault(one["id"], []).append(
                (path, [node["html"][:160] for node in one["nodes"]][:3])
            )
        beyond = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if beyond > 0:
            found.setdefault("wider than the window", []).append((path, beyond))
    assert found == {}
