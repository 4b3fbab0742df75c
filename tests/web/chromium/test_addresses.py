"""Addresses as people type and send them: with nonsense, long names, what one may not do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.web.chromium.conftest import SHOP, Sim, Tab, simulation

pytestmark = pytest.mark.process
NONSENSE = (
    "/calendar?from=garbage",
    "/calendar?at=garbage&lease=nope",
    "/calendar?from=0001-01-01T00:00:00Z&rows=nope",
    "/fleet?at=garbage",
    "/fleet?class=NOPE&tree=nope",
    "/fleet?host=nope&state=nope&span=nope",
    "/applications/nope",
    "/applications?limit=abc",
    "/why/nope",
    "/place?again=nope",
    "/violations?state=nope",
    "/refusals?days=nope&stage=nope",
    "/whatif?at=nope",
    "/plans?state=nope&kind=nope",
    "/plans/nope",
)
RED = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) found += data[at] > 180 && data[at + 1] < 80 ? 1 : 0;
  return found;
}"""
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
LONG = "long-name-" + "x" * 180


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    """With an application of a long name, and a refusal, both of a tenant."""
    made = simulation(state, "addresses")
    own = made.cli.as_tenant("tenants")
    quota = made.cli("quota", "set", "tenants", "--ensembles", "2")
    assert quota.status == 0, quota
    for name, expected in ((LONG, 0), ("shop", 0), ("refused", 5)):
        file = state / "addressed.yaml"
        text = SHOP.format(name=name).replace("count: 3", "count: 2").replace("keep: 2", "keep: 1")
        file.write_text(text, encoding="utf-8")
        assert own("ensemble", "create", "-f", str(file)).status == expected, name
    return made


def test_nonsense_in_an_address_leaves_the_screen_usable(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [r"status of 40[04]"]
    for path in NONSENSE:
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.get_by_text("Reading…").first.wait_for(state="detached")
        assert not tab.page.get_by_text("cannot be drawn").count(), path
    tab.go("/fleet?class=NOPE")
    tab.page.get_by_role("button", name="Without filters").click()
    tab.page.locator(".map canvas").wait_for()


def test_back_leaves_the_page_and_a_closed_drawer_gives_the_keyboard_back(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/violations")
    tab.page.get_by_role("heading", name="Violations").wait_for()
    tab.go("/")
    tab.page.get_by_role("heading", name="Fleet").wait_for()
    tab.page.go_back()
    tab.page.get_by_role("heading", name="Violations").wait_for()
    tab.go("/fleet?as=table")
    host = tab.page.get_by_role("button", name="h3", exact=True)
    host.focus()
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("complementary", name="h3").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("complementary").wait_for(state="detached")
    assert host.evaluate("one => one === document.activeElement")


def test_a_tab_learns_by_itself_that_its_session_is_over(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [r"status of 401"]
    tab.go("/violations")
    tab.page.get_by_text("Nothing is broken").wait_for()
    other = open_tab(home, tab.page.context)
    other.go("/violations")
    other.login("tenants")
    # It asks by itself; between the other's logout and login there is no session at all.
    over = tab.page.get_by_text("Somebody else has logged in")
    over.or_(tab.page.get_by_text("The session has ended")).wait_for(timeout=40_000)


def test_hosts_that_a_filter_leaves_out_are_pale(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.go("/fleet?state=closed")
    tab.page.get_by_text("0 hosts of 9").wait_for()
    canvas = tab.page.locator(".map canvas")
    canvas.wait_for()
    tab.page.wait_for_function("() => document.querySelector('.map canvas').width > 300")
    assert canvas.evaluate(RED) == 0


@pytest.mark.parametrize("width", [390, 640, 1280])
def test_long_names_leave_the_page_as_wide_as_the_window(
    home: Sim, open_tab: Callable[..., Tab], width: int
) -> None:
    tab = open_tab(home, viewport={"width": width, "height": 800})
    tab.go("/applications")
    link = tab.page.get_by_role("link", name=LONG)
    link.wait_for()
    assert tab.page.evaluate(OVERFLOW) <= 0
    link.click()
    tab.page.get_by_text("Where it stands").wait_for()
    assert tab.page.evaluate(OVERFLOW) <= 0
    tab.go("/fleet")
    tab.page.locator("option", has_text=LONG).wait_for(state="attached")
    assert tab.page.evaluate(OVERFLOW) <= 0


def test_an_operator_finds_applications_and_hosts_and_what_a_refusal_was_of(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/fleet")
    search = tab.page.get_by_role("searchbox", name="Find a host or an ensemble")
    search.fill("shop")
    search.press("Enter")
    tab.page.get_by_text("Where it stands").wait_for()
    search.fill("h6")
    search.press("Enter")
    tab.page.get_by_text("names with “h6”").wait_for()
    tab.go("/refusals")
    tab.page.get_by_role("link", name="refused").click()
    tab.page.get_by_text("refused of project tenants was refused").wait_for()
    tab.page.get_by_role("heading", name="What to do").wait_for()


def test_who_may_only_read_is_offered_no_change(home: Sim, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(home)
    tab.go()
    tab.login("tenants", role="reader")
    tab.go("/applications")
    tab.page.get_by_role("link", name="shop").click()
    tab.page.get_by_text("Where it stands").wait_for()
    for name in ("Confirm", "Release the places", "Delete…", "Place it now"):
        assert not tab.page.get_by_role("button", name=name).count(), name
    tab.page.get_by_role("link", name="Applications").click()
    tab.page.get_by_text("0 of 2 applications left").wait_for()
    assert not tab.page.get_by_role("button", name="Place an application…").count()
    tab.go("/calendar?away=h1")
    tab.page.get_by_text("There are no leases").wait_for()
    assert not tab.page.get_by_role("dialog").count()
    assert not tab.page.get_by_role("button", name="Plan an absence…").count()


def test_a_page_of_an_earlier_release_says_so_and_keeps_what_was_written(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [r"status of 404"]
    tab.go("/place")
    tab.page.route("**/vendor/yaml.js", lambda route: route.fulfill(status=404))
    written = SHOP.format(name="written")
    tab.page.get_by_label("Description").fill(written)
    tab.page.get_by_role("button", name="Try").click()
    tab.page.get_by_text("This page is older than the service").wait_for()
    tab.page.unroute_all()
    tab.page.get_by_role("button", name="Reload the page").click()
    tab.page.get_by_role("button", name="Reload the page").wait_for(state="detached")
    assert tab.page.get_by_label("Description").input_value() == written
