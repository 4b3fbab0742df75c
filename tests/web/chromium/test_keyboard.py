"""Every screen by the keyboard alone, and at twice its size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.web.chromium.conftest import Sim, Tab
from tests.web.chromium.test_accessibility import filled, paths

pytestmark = pytest.mark.process
MARKED = """() => {
  const can = "a[href], button, input, select, textarea, summary, canvas, [tabindex='0']";
  const shown = (one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled;
  const group = (one) => one.type === "radio" && !one.checked;
  // An open dialog keeps the keyboard.
  const root = document.querySelector("dialog[open]") ?? document;
  const found = [...root.querySelectorAll(can)].filter((one) =>
    one.tabIndex >= 0 && shown(one) && !group(one));
  found.forEach((one, at) => { one.dataset.walked = at; });
  return found.length;
}"""
"""Marks all that can be used, and how many these are."""
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  return {
    at: one.dataset.walked === undefined ? null : Number(one.dataset.walked),
    what: one.outerHTML.slice(0, 120),
    ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
    inside: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
  };
}"""
"""What has the keyboard: its mark, whether that is seen, and whether it is in the window."""


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    return filled(state, "keyboard")


def walk(tab: Tab, number: int) -> tuple[set[int], list[str]]:
    """Press Tab until all that is marked was reached; what was, and what could not be seen then."""
    reached: set[int] = set()
    unseen: list[str] = []
    for pressed in range(2 * number + 40):
        if pressed:  # a dialog has it at first
            tab.page.keyboard.press("Tab")
        found: Any = tab.page.evaluate(FOCUSED)
        if found is None or found["at"] is None:
            continue
        reached.add(found["at"])
        if not (found["ring"] and found["inside"]):
            unseen.append(found["what"])
        if len(reached) == number:
            break
    return reached, unseen


def test_all_of_every_screen_is_reached_by_tab_and_seen(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    missed: dict[str, list[str]] = {}
    for path in paths(home):
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.wait_for_timeout(500)
        number = tab.page.evaluate(MARKED)
        assert number > 4, path
        reached, unseen = walk(tab, number)
        lost = [
            tab.page.evaluate("at => document.querySelector(`[data-walked='${at}']`).outerHTML", at)
            for at in sorted(set(range(number)) - reached)
        ]
        if lost or unseen:
            missed[path] = [*(one[:120] for one in lost), *(f"not seen: {one}" for one in unseen)]
    assert missed == {}


def test_dialogs_keep_the_keyboard_and_give_it_back(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/fleet")
    tab.page.get_by_role("heading", level=1).wait_for()
    button = tab.page.get_by_role("button", name="JSON")
    button.focus()
    tab.page.keyboard.press("Enter")
    dialog = tab.page.get_by_role("dialog")
    dialog.wait_for()
    for _ in range(12):
        tab.page.keyboard.press("Tab")
        outside = tab.page.evaluate(
            "() => { const one = document.activeElement;"
            " return one !== document.body && !one.closest('dialog'); }"
        )
        assert not outside
    tab.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert button.evaluate("one => one === document.activeElement")


def test_what_a_screen_does_is_done_by_keys(home: Sim, open_tab: Callable[..., Tab]) -> None:
    """A filter, a sorted table, a row that opens, and the search."""
    tab = open_tab(home)
    keys = tab.page.keyboard
    tab.go("/refusals")
    tab.page.get_by_role("table").wait_for()
    tab.page.get_by_label("Of the last").focus()
    keys.press("ArrowDown")
    tab.page.wait_for_url("**/refusals?days=30")
    tab.page.get_by_role("button", name="Cause").focus()
    keys.press("Enter")
    tab.page.locator("th[aria-sort=ascending]").wait_for()
    tab.page.get_by_role("table").get_by_role("link").first.focus()
    keys.press("Enter")
    tab.page.get_by_role("heading", name="Why not").wait_for()
    keys.press("/")
    keys.type("shop")
    keys.press("Enter")
    tab.page.get_by_text("Where it stands").wait_for()
    tab.page.get_by_role("button", name="Lose").first.focus()
    keys.press("Enter")
    tab.page.get_by_text("Without ").first.wait_for()


def test_at_twice_its_size_nothing_is_cut_off(home: Sim, open_tab: Callable[..., Tab]) -> None:
    """As WCAG asks for: a window of 1280 points shows it as one of 640 does, twice as large."""
    tab = open_tab(home, viewport={"width": 640, "height": 450}, device_scale_factor=2)
    wrong: dict[str, object] = {}
    for path in paths(home):
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.wait_for_timeout(400)
        beyond = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        cut = tab.page.evaluate(
            """() => [...document.querySelectorAll("main button, main select, main h1, header *")]
              .filter((one) => one.checkVisibility() && !one.closest(".table, .skip, .hidden"))
              .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
              .map((one) => one.outerHTML.slice(0, 90))"""
        )
        if beyond > 0 or cut:
            wrong[path] = (beyond, cut)
    assert wrong == {}
