"""What a tenant's browser receives, and two of them in one."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Error
from tests.web.chromium.conftest import SHOP, Sim, Tab, simulation

pytestmark = pytest.mark.process
HIDDEN = {*(f"h{n}" for n in range(1, 10)), "r1", "r2", "r3", "elsewhere", "secret-of-others"}
"""Names of hosts and racks, and what belongs to others."""
SCREENS = ("/applications", "/calendar", "/violations?state=all", "/waiting", "/refusals", "/place")


@pytest.fixture(scope="module")
def home(state: Path) -> Sim:
    """With places, a refusal, leases, a violation and a waiting lease of `mine`, and of others."""
    made = simulation(state, "tenants")
    for project, name in (("elsewhere", "secret-of-others"), ("mine", "shop")):
        own = made.cli.as_tenant(project)
        file = state / f"{name}.yaml"
        text = SHOP.format(name=name).replace("count: 3", "count: 2").replace("keep: 2", "keep: 1")
        file.write_text(text, encoding="utf-8")
        assert own("ensemble", "create", "-f", str(file), "--hold", "4h").status == 0
        period = ("--start", "2026-11-22T00:00Z", "--end", "2026-11-23T00:00Z")
        words = ("--flavor", "m1.small", "--count", "2", "--name", name, *period)
        assert own("lease", "create", *words).status == 0
        more = ("--flavor", "m1.2xlarge", "--count", "9", "--name", name, *period, "--wait")
        own("lease", "create", *more)
    mine = made.cli.as_tenant("mine").body("ensemble", "list")["ensembles"]
    shop = next(one["id"] for one in mine if one["policies"])
    host = made.cli.body("member", "list", shop)["members"][0]["host"]
    assert made.cli("host", "close", host, "--reason", "secret-of-others").status == 0
    return made


def strings(value: object) -> set[str]:
    """Every word of every text in a JSON value."""
    if isinstance(value, dict):
        return {word for one in value.items() for part in one for word in strings(part)}
    if isinstance(value, list):
        return {word for one in value for word in strings(one)}
    if not isinstance(value, str):
        return set()
    for mark in '()[]{},:;"/':
        value = value.replace(mark, " ")
    return set(value.split())


def test_a_tenant_receives_no_name_of_a_host_and_nothing_of_others(
    home: Sim, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go()
    tab.login("mine")
    tab.received.clear()
    tenant = home.cli.as_tenant("mine")
    ensemble = tenant.body("ensemble", "list")["ensembles"][0]["id"]
    refusals = tenant.body("explanation", "list")["explanations"]
    found = {}
    for path in (*SCREENS, f"/applications/{ensemble}", *(f"/why/{one['id']}" for one in refusals)):
        tab.go(path)
        tab.page.get_by_role("heading", level=1).wait_for()
        tab.page.wait_for_timeout(400)
        for one in tab.received:
            # What the page before was still answered when it was left cannot be read any more.
            with contextlib.suppress(Error):
                if "json" in (one.headers.get("content-type") or ""):
                    found[one.url] = strings(json.loads(one.text()))
        tab.received.clear()
    assert len(found) > len(SCREENS)
    assert {url: words & HIDDEN for url, words in found.items() if words & HIDDEN} == {}
    assert tab.page.get_by_role("link", name="Fleet").count() == 0
    tab.go("/fleet")
    tab.page.get_by_text("There is no screen").wait_for()


def test_a_second_login_ends_the_first_ones_tab(home: Sim, open_tab: Callable[..., Tab]) -> None:
    first = open_tab(home)
    first.expected = ["status of 401"]
    first.go("/applications")
    first.login("mine")
    first.page.get_by_role("link", name="shop").first.wait_for()
    second = open_tab(home, first.page.context)
    second.go("/applications")
    second.login("elsewhere")
    second.page.get_by_role("link", name="secret-of-others").first.wait_for()
    first.page.get_by_role("link", name="Violations").click()
    first.page.get_by_text("Somebody else has logged in with this browser").wait_for()
    assert "secret-of-others" not in first.page.content()


def test_a_thousand_policies_can_be_read(home: Sim, open_tab: Callable[..., Tab]) -> None:
    policies = [
        {"name": f"p{n}", "type": "ban", "members": ["one"], "domains": [f"h{1 + n % 2}"]}
        for n in range(1000)
    ]
    file = Path(home.cli.environment["XDG_STATE_HOME"]) / "many.json"
    body = {
        "name": "many",
        "members": [{"name": "one", "flavor": "m1.small"}],
        "policies": policies,
    }
    file.write_text(json.dumps(body), encoding="utf-8")
    made = home.cli.body("ensemble", "create", "-f", str(file))
    tab = open_tab(home)
    tab.go(f"/applications/{made['ensemble']['id']}")
    tab.page.locator(".policies li").nth(999).wait_for()
    assert tab.page.locator(".policies .badge.good").count() == 1000
