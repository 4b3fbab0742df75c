"""What would be, and plans, in a browser alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.web.chromium.conftest import SHOP, Sim, Tab, simulation

pytestmark = pytest.mark.process
WRONG = r"status of 40[04]"


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    made = simulation(state, "day-two")
    file = state / "shop.yaml"
    file.write_text(SHOP.format(name="shop"))
    cli = made.cli
    assert cli("ensemble", "create", "-f", str(file), "--hold", "1h").status == 0
    flavors = {"web": "m1.small", "app": "m1.medium", "db": "m1.xlarge"}
    for number, one in enumerate(cli.body("member", "list", "shop")["members"]):
        claim = cli.body(
            "claim", "create", "shop", one["name"], "--flavor", flavors[one["name"].split("[")[0]]
        )["claim"]["id"]
        server = f"5a0e0000-0000-4000-8000-{number:012}"
        assert cli("claim", "set", claim, "--active", "--server", server).status == 0
    assert cli("ensemble", "confirm", "shop").status == 0
    return made


def test_what_if_a_rack_is_lost(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.go("/whatif")
    tab.page.get_by_label("Lose (hosts").fill("rack/r2")
    tab.page.get_by_role("button", name="What if?").click()
    tab.page.get_by_text("3 hosts down").wait_for()
    lost = tab.page.get_by_role("region", name="Lost members")
    assert "shop" in lost.inner_text()
    assert "lose=rack" in tab.page.url
    assert tab.page.get_by_role("region", name="What still fits").locator("tbody tr").count() > 0
    revision = home.cli.body("fleet", "show")["fleet"]["revision"]
    tab.page.reload()
    tab.page.get_by_text("3 hosts down").wait_for()
    assert home.cli.body("fleet", "show")["fleet"]["revision"] == revision


def test_what_is_supposed_wrongly_is_named(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.expected = [WRONG]
    tab.go("/whatif?lose=rack/r77")
    tab.page.get_by_role("alert").get_by_text("r77").wait_for()
    tab.go("/whatif?add=h4")
    tab.page.get_by_role("alert").get_by_text("4xh3@r9").wait_for()


def test_a_host_is_drained_by_a_plan(home: Sim, open_tab: Callable[..., Tab]) -> None:
    placed = {one["host"] for one in home.cli.body("member", "list", "shop")["members"]}
    host = min(placed)
    tab = open_tab(home)
    tab.go("/plans")
    tab.page.get_by_text("There are no plans yet").wait_for()
    tab.page.get_by_label("Hosts, or domains").fill(host)
    tab.page.get_by_role("button", name="Make a plan").click()
    tab.page.get_by_role("heading", name="Moves, in order").wait_for()
    moves = tab.page.get_by_role("region", name="Moves")
    assert host in moves.inner_text()
    tab.page.get_by_role("button", name="Apply").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Apply").click()
    tab.page.get_by_role("button", name="Pause").wait_for()
    assert home.cli("sim", "clock", "+10m").status == 0
    tab.page.locator("main .badge.good", has_text="done").first.wait_for()
    now = {one["host"] for one in home.cli.body("member", "list", "shop")["members"]}
    assert host not in now
    tab.go("/plans")
    tab.page.get_by_role("link", name=f"drain {host}").wait_for()


def test_a_plan_for_nothing_is_refused_with_the_reason(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [WRONG]
    tab.go("/plans")
    tab.page.get_by_label("Hosts, or domains").fill("h77")
    tab.page.get_by_role("button", name="Make a plan").click()
    tab.page.get_by_role("alert").get_by_text("h77").wait_for()
    tab.page.get_by_role("combobox", name="Plan to").select_option("repair")
    tab.page.get_by_role("textbox", name="Application").fill("nobody")
    tab.page.get_by_role("button", name="Make a plan").click()
    tab.page.get_by_role("alert").get_by_text("nobody").wait_for()
