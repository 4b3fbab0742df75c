"""The page of a service that asks a real Keystone: ways in, another project, the way out."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.conftest import Cli
from tests.scenarios.keystone.conftest import PASSWORD, Identity, call, guarded, identity, people
from tests.scenarios.processes.conftest import Served
from tests.web.chromium.conftest import Sim, Tab

__all__ = ["guarded", "identity", "people"]

# Whoever is first also waits until Keystone is set up: five programs of several seconds each.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def home(guarded: Served) -> Sim:
    return Sim(Cli({}), f"http://127.0.0.1:{guarded.port}")


@pytest.fixture(scope="module")
def walker(people: Identity) -> str:
    """A user who may change in one project and read in another; none of them is the default."""
    shop, annex = people.id_of("projects", "shop"), people.make_project("walked-annex")
    people.make_user("walker", f"/projects/{shop}", "member")
    user, role = people.id_of("users", "walker"), people.id_of("roles", "reader")
    people.ask("PUT", f"/projects/{annex}/users/{user}/roles/{role}")
    return "walker"


def enter(tab: Tab, way: str, **fields: str) -> None:
    """Choose a way in, fill its fields and log in."""
    tab.page.get_by_role("radio", name=way, exact=True).check()
    for label, text in fields.items():
        field = tab.page.locator("form").get_by_label(label.capitalize(), exact=True)
        field.fill(text)
    tab.page.get_by_role("button", name="Log in").click()


def who(tab: Tab) -> Any:
    """What the frame says of who is logged in."""
    tab.page.get_by_role("button", name="Log out").wait_for()
    return tab.page.locator(".who")


def leave(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Log out").click()
    tab.page.get_by_role("button", name="Log in").wait_for()


def test_a_user_logs_in_with_a_password_changes_project_and_logs_out(
    home: Sim, walker: str, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.expected = [r"status of 401"]
    tab.go("/applications")
    enter(tab, "User and password", user=walker, password="wrong")
    tab.page.get_by_role("alert").wait_for()
    tab.page.get_by_label("Password", exact=True).fill(PASSWORD)
    tab.page.get_by_label("Project", exact=True).fill("shop")
    tab.page.get_by_role("button", name="Log in").click()
    assert walker in who(tab).inner_text()
    tab.page.get_by_role("button", name="Place an application…").wait_for()
    assert tab.page.get_by_role("link", name="Fleet").count() == 0, "no operator"

    tab.page.reload()
    project = who(tab).get_by_label("Project")
    assert project.locator("option:checked").inner_text() == "shop"
    project.select_option("walked-annex")
    tab.page.get_by_role("button", name="Place an application…").wait_for(state="detached")
    assert project.locator("option:checked").inner_text() == "walked-annex"

    assert tab.page.evaluate("document.cookie") == "", "no script reads the session"
    (cookie,) = tab.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert PASSWORD not in tab.page.content()
    leave(tab)
    assert tab.page.context.cookies() == []
    tab.page.reload()
    tab.page.get_by_role("button", name="Log in").wait_for()


def test_an_application_credential_and_a_token_open_a_session(
    home: Sim, people: Identity, open_tab: Callable[..., Tab]
) -> None:
    member = "member-of-shop"
    token = people.token(member, people.project("shop"))
    made = call(
        "POST",
        f"{people.url}/users/{people.id_of('users', member)}/application_credentials",
        {"application_credential": {"name": "walked"}},
        x_auth_token=token,
    ).json["application_credential"]
    tab = open_tab(home)
    tab.go("/applications")
    enter(tab, "Application credential", id=made["id"], secret=made["secret"])
    assert member in who(tab).inner_text()
    leave(tab)
    enter(tab, "Token", token=token)
    assert member in who(tab).inner_text()
    leave(tab)
    again = call("GET", f"{home.endpoint}/v1/ensembles", x_auth_token=token)
    assert again.status == 200, "a token that was pasted stays its owner's"


def test_an_administrator_sees_the_fleet(
    home: Sim, people: Identity, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(home)
    tab.go("/")
    enter(tab, "User and password", user="admin", password=PASSWORD, project="admin")
    assert "(operator)" in who(tab).inner_text()
    tab.page.get_by_role("link", name="Fleet").click()
    tab.page.get_by_role("heading", name="Fleet").wait_for()
    tab.page.get_by_text("There are no hosts yet").wait_for()
