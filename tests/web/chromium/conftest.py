"""A real browser in front of real simulations: Debian's Chromium, driven by Playwright."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, started, state

from moorage.client import registry

__all__ = ["state"]

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SHOP = """\
name: {name}
members:
  - {{name: web, count: 3, flavor: m1.small}}
  - {{name: app, count: 3, flavor: m1.medium}}
  - {{name: db, count: 3, flavor: m1.xlarge}}
policies:
  - {{name: db-ha, type: survive, members: [db], level: rack, lose: 1, keep: 2}}
  - {{name: web-apart, type: anti-affinity, members: [web]}}
  - {{name: web-racks, type: spread, members: [web], level: rack, min_domains: 2, max_skew: 1}}
  - {{name: pair, type: proximity, zip: [app, db], level: rack}}
"""


@dataclass(frozen=True)
class Sim:
    """A running simulation: its operator's command line, and where it serves."""

    cli: Cli
    endpoint: str

    def ui(self, path: str = "") -> str:
        return f"{self.endpoint}/ui{path}"


def simulation(state: Path, name: str) -> Sim:
    """A new simulation of three racks."""
    cli = started(state, name)
    found = registry.known(registry.state_directory({"XDG_STATE_HOME": str(state)}), name)
    assert found is not None
    return Sim(cli, found.endpoint)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, once for all tests of a worker."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: .ci/chromium installs it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Tab:
    """A tab, and what went over the wire and wrong in it."""

    page: Any
    home: Sim
    faults: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    received: list[Any] = field(default_factory=list)
    """Answers of the API and of the session."""
    expected: list[str] = field(default_factory=list)
    """Patterns of console errors that the test provokes."""

    def note_console(self, said: Any) -> None:
        if said.type == "error":
            self.faults.append(f"{said.text} {said.location['url']}")

    def note_request(self, sent: Any) -> None:
        if not sent.url.startswith((self.home.endpoint, "data:", "blob:")):
            self.elsewhere.append(sent.url)

    def note_response(self, answer: Any) -> None:
        if "/ui/files/" not in answer.url:
            self.received.append(answer)

    def go(self, path: str = "") -> None:
        self.page.goto(self.home.ui(path))

    def login(self, project: str, role: str = "member", user: str = "someone") -> None:
        """Log in as somebody else; the page has logged in the operator at first."""
        self.page.get_by_role("button", name="Change role").click()
        self.page.get_by_label("User").fill(user)
        self.page.get_by_label("Project").fill(project)
        self.page.get_by_role("combobox", name="Role").select_option(role)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("button", name="Change role").wait_for()


@pytest.fixture
def open_tab(chromium: Any) -> Iterator[Callable[..., Tab]]:
    """Opens tabs of their own. In the end: no error, no request to elsewhere, no policy broken."""
    opened: list[Tab] = []
    contexts = []

    def opens(home: Sim, context: Any = None, **options: Any) -> Tab:
        if context is None:
            context = (
                chromium.new_context(
                    viewport={"width": 1280, "height": 900}, locale="en-GB", timezone_id="UTC"
                )
                if not options
                else chromium.new_context(locale="en-GB", **options)
            )
            contexts.append(context)
        tab = Tab(context.new_page(), home)
        tab.page.set_default_timeout(15_000)
        tab.page.on("pageerror", lambda error: tab.faults.append(str(error)))
        tab.page.on("console", tab.note_console)
        tab.page.on("request", tab.note_request)
        tab.page.on("response", tab.note_response)
        opened.append(tab)
        return tab

    yield opens
    for context in contexts:
        context.close()
    for tab in opened:
        assert tab.elsewhere == []
        known = re.compile("|".join([*tab.expected, r"(?!)"]))
        assert [one for one in tab.faults if not known.search(one)] == []
