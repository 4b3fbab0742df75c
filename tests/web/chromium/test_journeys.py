"""What people do with the page, in a browser alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.web.chromium.conftest import SHOP, Sim, Tab, simulation

pytestmark = pytest.mark.process
REFUSED = r"status of 409"
SLOW = """const real = fetch;
window.fetch = async (where, ...rest) => {
  if (String(where).includes("/v1/waitlist")) await new Promise((done) => setTimeout(done, 4000));
  return real(where, ...rest);
};"""
"""Answers for one screen take longer than the time between two events of the ledger."""
CLOSED = ("host", "close", "h9", "--reason", "a fan")
OPENED = ("host", "open", "h9")
LAYOUT = Path(__file__).with_name("fleet_layout_check.js")
"""Of 60 random fleets, the hosts that are not found where they are drawn."""


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    return simulation(state, "journeys")


def succeed(home: Sim, *words: str) -> None:
    """Run a command that must succeed, such as the removal of what a test has made."""
    done = home.cli(*words)
    assert done.status == 0, done


def placed(tab: Tab, text: str) -> None:
    """Describe an application and ask for its places."""
    tab.go("/place")
    tab.page.get_by_label("Description").fill(text)
    tab.page.get_by_role("button", name="Place and hold").click()


def test_a_tenant_places_a_shop_and_learns_why_a_second_does_not_fit(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [REFUSED]
    tab.go()
    tab.login("shops")
    placed(tab, SHOP.format(name="shop"))
    tab.page.get_by_text("When any one rack is lost").wait_for()
    assert tab.page.locator(".policies .badge.good").count() == 4
    tab.page.get_by_role("button", name="Lose").first.click()
    tab.page.get_by_text("db 2 of 3, needs 2").wait_for()

    placed(tab, SHOP.format(name="second"))
    tab.page.get_by_text("What cannot hold together").wait_for()
    card = tab.page.locator(".card .card", has_text="db-ha: keep 2 → 1")
    card.get_by_role("button", name="Try").click()
    card.get_by_text("Nothing was written").wait_for()
    assert len(home.cli.as_tenant("shops").body("ensemble", "list")["ensembles"]) == 1
    card.get_by_role("button", name="Apply").click()
    tab.page.get_by_text("Where it stands").wait_for()
    names = {
        one["name"] for one in home.cli.as_tenant("shops").body("ensemble", "list")["ensembles"]
    }
    assert names == {"shop", "second"}
    tab.go("/applications")
    for one in names:
        home.cli.as_tenant("shops")("ensemble", "delete", one, "--yes")


def test_a_lease_is_dragged_to_a_later_end(home: Sim, open_tab: Callable[..., Tab]) -> None:
    lease = home.cli.body(
        "lease", "create", "--flavor", "m1.small", "--count", "2", "--name", "dragged",
        "--start", "2026-11-23T00:00Z", "--end", "2026-11-24T00:00Z",
    )["lease"]  # fmt: skip
    tab = open_tab(home)
    tab.go("/calendar?from=2026-11-21T00:00:00Z")
    canvas = tab.page.locator(".gantt canvas")
    canvas.wait_for()
    tab.page.wait_for_timeout(300)
    box = canvas.bounding_box()
    day = box["width"] / 7
    row = tab.page.locator(".gantt .labels span", has_text="dragged").bounding_box()
    y = row["y"] + 11
    tab.page.mouse.move(box["x"] + 3 * day - 1, y)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 3.5 * day, y, steps=4)
    tab.page.locator(".gantt .badge.good").wait_for()
    assert home.cli.body("lease", "show", lease["id"])["lease"]["end"] == "2026-11-24T00:00:00Z"
    tab.page.mouse.up()
    tab.page.get_by_role("button", name="Change it").click()
    tab.page.get_by_role("dialog").wait_for(state="detached")
    assert home.cli.body("lease", "show", lease["id"])["lease"]["end"] == "2026-11-24T12:00:00Z"
    succeed(home, "lease", "cancel", lease["id"])


def test_an_absence_is_tried_and_planned(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.go("/fleet?host=h6")
    tab.page.get_by_role("button", name="Plan an absence…").click()
    dialog = tab.page.get_by_role("dialog")
    assert dialog.get_by_label("Hosts").input_value() == "h6"
    dialog.get_by_label("From (your time)").fill("2026-11-22T08:00")
    dialog.get_by_label("Until (your time)").fill("2026-11-22T18:00")
    dialog.get_by_role("button", name="Plan it").is_disabled()
    dialog.get_by_role("button", name="Try").click()
    dialog.get_by_text("Nobody is booked there then").wait_for()
    assert home.cli.body("capacity", "window", "list")["windows"] == []
    dialog.get_by_role("button", name="Plan it").click()
    dialog.wait_for(state="detached")
    (window,) = home.cli.body("capacity", "window", "list")["windows"]
    assert (window["hosts"], window["start"]) == (["h6"], "2026-11-22T08:00:00Z")
    tab.go("/fleet?at=2026-11-22T12:00:00Z&as=table&state=away")
    tab.page.get_by_role("row", name="h6").wait_for()
    assert tab.page.get_by_role("row").count() == 2
    succeed(home, "capacity", "window", "delete", window["id"])


def test_several_hosts_are_selected_and_their_absence_is_deleted(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/fleet")
    canvas = tab.page.locator(".map canvas")
    canvas.focus()
    for key in ("Home", " ", "ArrowRight", " "):
        tab.page.keyboard.press(key)
    tab.page.get_by_text("2 hosts selected").wait_for()
    tab.page.keyboard.press(" ")
    tab.page.get_by_text("1 host selected").wait_for()
    box = canvas.bounding_box()
    tab.page.keyboard.down("Shift")
    tab.page.mouse.move(box["x"] + 2, box["y"] + 2)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=3)
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    tab.page.get_by_text("9 hosts selected").wait_for()
    tab.page.get_by_role("button", name="Select none").click()
    canvas.focus()
    for key in ("Home", " ", "ArrowRight", " "):
        tab.page.keyboard.press(key)
    tab.page.get_by_role("button", name="Plan an absence…").click()
    dialog = tab.page.get_by_role("dialog")
    assert dialog.get_by_label("Hosts").input_value() == "h1 h2"
    dialog.get_by_label("Reason").fill("firmware")
    dialog.get_by_role("button", name="Try").click()
    dialog.get_by_text("Nobody is booked there then").wait_for()
    dialog.get_by_role("button", name="Plan it").click()
    dialog.wait_for(state="detached")
    tab.page.get_by_text("As a table").click()
    tab.page.get_by_role("button", name="firmware").first.click()
    drawer = tab.page.get_by_role("complementary", name="firmware")
    drawer.get_by_role("button", name="Delete the absence…").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Delete the absence").click()
    drawer.wait_for(state="detached")
    assert home.cli.body("capacity", "window", "list")["windows"] == []


def test_an_offer_is_accepted_in_the_calendar(home: Sim, open_tab: Callable[..., Tab]) -> None:
    made = home.cli.body(
        "offer", "create", "--flavor", "m1.small", "--name", "offered",
        "--earliest", "2026-11-23T00:00Z", "--latest-end", "2026-11-26T00:00Z", "--duration", "1d",
    )["offers"][0]  # fmt: skip
    tab = open_tab(home)
    tab.go("/calendar?from=2026-11-21T00:00:00Z")
    tab.page.get_by_text("As a table").click()
    tab.page.get_by_role("button", name="offered").click()
    tab.page.get_by_role("button", name="Accept the offer…").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Accept the offer").click()
    tab.page.get_by_role("complementary", name="Lease").wait_for()
    assert home.cli.body("lease", "show", made["id"])["lease"]["status"] == "pending"
    succeed(home, "lease", "cancel", made["id"])


def test_a_host_is_reached_by_keys_alone(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.go("/fleet")
    canvas = tab.page.locator(".map canvas")
    canvas.wait_for()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if canvas.evaluate("one => one === document.activeElement"):
            break
    else:
        pytest.fail("the map is not reached by Tab")
    for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
        tab.page.keyboard.press(key)
    tab.page.get_by_role("complementary", name="h3").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("complementary").wait_for(state="detached")


def test_the_frame_offers_the_command_and_what_was_read(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    for path, command in {
        "/fleet": "moorage fleet show",
        "/fleet?host=h1": "moorage host show h1",
        "/applications": "moorage ensemble list --all-projects",
        "/violations": "moorage violation list --all-projects",
        "/waiting": "moorage waitlist list --all-projects",
        "/whatif?lose=rack/r1,h9": "moorage whatif --lose rack/r1 --lose h9",
        "/refusals": "moorage explanation list --all-projects",
        "/calendar": "moorage lease gantt",
    }.items():
        tab.go(path)
        assert (
            tab.page.get_by_role("button", name="Copy as command").get_attribute("title") == command
        )
        words = command.split()[1:]
        assert home.cli(*words).status == 0, command
        tab.page.get_by_role("button", name="JSON").click()
        tab.page.get_by_role("dialog").get_by_text(" /v1/").first.wait_for()
        tab.page.keyboard.press("Escape")


def test_events_of_others_are_seen_without_a_reload(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/applications?name=live")
    tab.page.get_by_text("No application is called").wait_for()
    file = Path(home.cli.environment["XDG_STATE_HOME"]) / "live.yaml"
    file.write_text(SHOP.format(name="live"), encoding="utf-8")
    assert home.cli("ensemble", "create", "-f", str(file)).status == 0
    tab.page.get_by_role("link", name="live").wait_for()
    home.cli("ensemble", "delete", "live", "--yes")
    tab.page.get_by_text("No application is called").wait_for()


def test_a_slow_answer_comes_although_much_happens_meanwhile(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.page.add_init_script(SLOW)
    tab.go("/waiting")
    shown = tab.page.get_by_text("Nothing waits.")
    for round_ in range(14):
        succeed(home, *(OPENED if round_ % 2 else CLOSED))
        tab.page.wait_for_timeout(700)
        if shown.is_visible():
            break
    else:
        pytest.fail("the screen is read again before it was ever shown")
    home.cli(*OPENED)


def test_names_and_reasons_are_shown_as_text(home: Sim, open_tab: Callable[..., Tab]) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    tab = open_tab(home)
    tab.page.on("dialog", lambda said: tab.faults.append(f"markup ran: {said.message}"))
    tab.go()
    placed(tab, SHOP.format(name=f"'{evil}'"))
    tab.page.get_by_text("Where it stands").wait_for()
    assert home.cli("host", "close", "h1", "--reason", evil).status == 0
    for path in ("/applications", "/violations", "/fleet?host=h1", "/calendar"):
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.wait_for_timeout(300)
        assert tab.page.locator("main img").count() == 0
    tab.go("/fleet?host=h1")
    tab.page.get_by_text(f"operator: {evil}").wait_for()
    home.cli("host", "open", "h1")
    home.cli("ensemble", "delete", evil, "--yes")


def test_the_time_of_the_viewer_may_be_wrong(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.page.clock.install(time="2031-01-01T00:00:00Z")
    tab.go()
    placed(tab, SHOP.format(name="timely"))
    tab.page.get_by_text("held, 1 h left").wait_for()
    home.cli("ensemble", "delete", "timely", "--yes")


def test_the_service_may_go_away_and_come_back(state: Path, open_tab: Callable[..., Tab]) -> None:
    own = simulation(state, "gone")
    tab = open_tab(own)
    tab.expected = ["ERR_CONNECTION", "Failed to fetch", "Failed to load resource"]
    tab.go("/applications")
    tab.page.get_by_text("Nothing is described yet").wait_for()
    port = own.endpoint.rpartition(":")[2]
    found: Any = own.cli
    assert found("sim", "stop", "gone").status == 0
    tab.page.get_by_text("The service does not answer").wait_for()
    again = found("sim", "start", "--fleet", "three-racks.yaml", "--name", "gone", "--port", port)
    assert again.status == 0, again
    # Another ledger has another key: the session is over, and the page says so.
    tab.page.get_by_text("The session has ended").or_(
        tab.page.get_by_text("Change role")
    ).first.wait_for()


def test_one_host_of_the_map_is_where_the_arithmetic_says(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/fleet")
    tab.page.locator(".map canvas").wait_for()
    wrong = tab.page.evaluate(LAYOUT.read_text(encoding="utf-8"))
    assert wrong == []
