"""Sessions of the page with a real Keystone: every kind of login, projects, and Keystone gone."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.scenarios.keystone.conftest import PASSWORD, Answer, Identity, call
from tests.scenarios.processes.conftest import Served

from moorage.domain.period import HOUR, MINUTE, parse_instant

# Whoever is first also waits until Keystone is set up: five programs of several seconds each.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]

REACHED = "member-of-shop"


class Tab:
    """A tab of a browser, over HTTP."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.cookie = ""
        self.session = ""
        self.seen: list[Answer] = []

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        url = f"http://127.0.0.1:{self._served.port}{path}"
        own = {"cookie": self.cookie, "x_moorage_session": self.session} if self.cookie else {}
        answer = call(method, url, body, sec_fetch_site="same-origin", **own, **headers)
        self.seen.append(answer)
        if (sent := answer.headers.get("set-cookie")) is not None:
            self.cookie = "" if "Max-Age=0" in sent else sent.partition(";")[0]
        return answer

    def login(self, **body: Any) -> Any:
        answer = self("POST", "/ui/session", body)
        assert answer.status == 200, answer.raw
        found = answer.json["session"]
        self.session = found["id"]
        return found

    def refused(self, **body: Any) -> tuple[int, str]:
        answer = self("POST", "/ui/session", body)
        return answer.status, answer.json["errors"][0]["code"]


@pytest.fixture
def tab(guarded: Served) -> Tab:
    return Tab(guarded)


@pytest.fixture(scope="module")
def dual(people: Identity) -> str:
    """A user with a role in two projects, and none by default."""
    one, two = people.id_of("projects", "shop"), people.make_project("annex")
    people.make_user("dual", f"/projects/{one}", "member")
    user = people.id_of("users", "dual")
    role = people.id_of("roles", "reader")
    people.ask("PUT", f"/projects/{two}/users/{user}/roles/{role}")
    return "dual"


def test_it_says_what_it_takes(tab: Tab) -> None:
    found = tab("GET", "/ui/session").json
    assert found["session"] is None
    assert found["login"]["auth"] == "keystone"
    assert set(found["login"]["methods"]) == {"token", "password", "application_credential"}


def test_a_password_opens_a_session(people: Identity, tab: Tab) -> None:
    found = tab.login(user=REACHED, password=PASSWORD, project="shop")
    shop = people.id_of("projects", "shop")
    assert found["user"] == {"id": people.id_of("users", REACHED), "name": REACHED}
    assert found["project"] == {"id": shop, "name": "shop"}
    assert found["projects"] == [{"id": shop, "name": "shop"}]
    assert (found["operator"], found["rules"]["moorage:fleet:show"]) == (False, False)
    assert {"member", "reader"} <= set(found["roles"])
    assert tab("GET", "/v1/ensembles").status == 200
    assert tab("GET", "/v1/fleet").status == 403
    assert tab("GET", "/v1/fleet", x_roles="admin").status == 403
    assert tab("GET", "/placement/resource_providers").status == 401
    assert tab("GET", "/ui/session").json["session"] == found


def test_a_session_lasts_no_longer_than_its_token(tab: Tab) -> None:
    found = tab.login(user=REACHED, password=PASSWORD, project="shop")
    left = parse_instant(found["expires_at"]) - time.time_ns() // 1000
    assert 50 * MINUTE < left <= HOUR, "Keystone's tokens last for an hour"


def test_several_factors_are_more_than_the_page_can(people: Identity, tab: Tab) -> None:
    shop = people.id_of("projects", "shop")
    people.make_user("careful", f"/projects/{shop}", "reader")
    rules = [["password", "mapped"]]
    options = {"multi_factor_auth_enabled": True, "multi_factor_auth_rules": rules}
    people.ask(
        "PATCH", f"/users/{people.id_of('users', 'careful')}", {"user": {"options": options}}
    )
    assert tab.refused(user="careful", password=PASSWORD) == (401, "session.refused")
    assert "several factors" in tab.seen[-1].json["errors"][0]["detail"]


def test_domains_are_named_or_are_the_default(tab: Tab) -> None:
    who = {"user": REACHED, "password": PASSWORD}
    for domain in ("Default", "default"):
        tab.login(**who, user_domain=domain, project="shop", project_domain=domain)
    assert tab.refused(**who, user_domain="elsewhere") == (401, "session.refused")
    assert tab.refused(**who, project="nowhere") == (401, "session.refused")
    assert tab.refused(**who, project="other") == (401, "session.refused")


@pytest.mark.parametrize(
    "body",
    [
        {"user": REACHED, "password": "wrong-horse"},
        {"user": "who-is-this", "password": PASSWORD},
        {"application_credential": {"id": "0" * 32, "secret": "wrong-horse"}},
        {"token": "gAAAAAwrong-horse"},
        {"token": "wrong-horse\r\nX-Roles: admin"},
        {"token": ""},
    ],
)
def test_wrong_credentials(tab: Tab, body: dict[str, Any]) -> None:
    assert tab.refused(**body) == (401, "session.refused")
    assert tab.cookie == ""
    assert b"wrong-horse" not in tab.seen[-1].raw


def test_without_a_project_it_is_the_first_and_can_be_changed(dual: str, tab: Tab) -> None:
    first = tab.login(user=dual, password=PASSWORD)
    assert first["project"]["name"] == "annex"
    assert [one["name"] for one in first["projects"]] == ["annex", "shop"]
    assert first["rules"]["moorage:ensembles:create"] is False
    ensemble = {"ensemble": {"name": "mine", "members": []}}
    assert tab("POST", "/v1/ensembles", ensemble).status == 403
    other = tab.login(project=first["projects"][1]["id"])
    assert (other["project"]["name"], other["user"]) == ("shop", first["user"])
    assert other["id"] != first["id"]
    assert other["rules"]["moorage:ensembles:create"] is True
    made = tab("POST", "/v1/ensembles", ensemble)
    assert (made.status, made.json["ensemble"]["project_id"]) == (201, other["project"]["id"])
    tab.login(project=first["project"]["id"])
    found = made.json["ensemble"]["id"]
    assert tab("GET", f"/v1/ensembles/{found}").status == 404
    tab.login(project=other["project"]["id"])
    assert tab("DELETE", f"/v1/ensembles/{found}", if_match="*").status == 204


def test_a_project_without_a_role(people: Identity, tab: Tab) -> None:
    tab.login(user=REACHED, password=PASSWORD, project="shop")
    for project in (people.id_of("projects", "other"), "no-such-project"):
        assert tab.refused(project=project) == (403, "session.refused")
    assert tab("GET", "/v1/ensembles").status == 200, "the session stays as it was"
    nobody = Tab(tab._served)
    assert nobody.refused(user="watcher", password=PASSWORD) == (403, "session.refused")
    assert nobody.refused(project=project) == (401, "session.refused")


def test_an_application_credential(people: Identity, tab: Tab) -> None:
    token = people.token("admin-of-shop", people.project("shop"))
    user = people.id_of("users", "admin-of-shop")
    body = {"application_credential": {"name": "page", "roles": [{"name": "reader"}]}}
    url = f"{people.url}/users/{user}/application_credentials"
    made = call("POST", url, body, x_auth_token=token).json["application_credential"]
    found = tab.login(application_credential={"id": made["id"], "secret": made["secret"]})
    assert (found["project"]["name"], found["roles"]) == ("shop", ["reader"])
    assert found["operator"] is False
    assert tab.refused(project=people.id_of("projects", "shop")) == (403, "session.refused")
    assert tab("GET", "/v1/ensembles").status == 200


def test_a_token_is_pasted_and_outlives_the_session(people: Identity, tab: Tab) -> None:
    token = people.token("admin-of-shop", people.project("shop"))
    found = tab.login(token=token)
    assert (found["user"]["name"], found["project"]["name"]) == ("admin-of-shop", "shop")
    assert found["operator"] is True
    assert tab("DELETE", "/ui/session").status == 204
    checked = call("GET", f"{people.url}/auth/projects", x_auth_token=token)
    assert checked.status == 200
    unscoped = tab.login(token=people.token(REACHED, None))
    assert unscoped["project"]["name"] == "shop"


def test_logging_out_ends_the_token_of_the_session(people: Identity, tab: Tab) -> None:
    tab.login(user=REACHED, password=PASSWORD, project="shop")
    stolen, session = tab.cookie, tab.session
    assert tab("DELETE", "/ui/session").status == 204
    assert (tab.cookie, tab("GET", "/v1/ensembles").status) == ("", 401)
    tab.cookie, tab.session = stolen, session
    # Workers believe a token for some minutes once they have asked; Keystone no longer does.
    answer = tab("GET", "/ui/session")
    assert (answer.status, answer.json["session"]) == (200, None)


def test_no_answer_and_no_log_has_a_secret(people: Identity, guarded: Served) -> None:
    tab = Tab(guarded)
    token = people.token(REACHED, people.project("shop"))
    tab.login(token=token)
    tab.login(user=REACHED, password=PASSWORD, project="shop")
    tab("GET", "/v1/ensembles")
    tab.refused(user=REACHED, password="tried-and-wrong")
    tab("DELETE", "/ui/session")
    seen = json.dumps([[one.raw.decode(), one.headers] for one in tab.seen])
    logged = guarded.log.read_text()
    for secret in (token, PASSWORD, "tried-and-wrong", tab.seen[1].headers["set-cookie"][30:90]):
        assert secret not in logged
    for secret in (token, PASSWORD, "tried-and-wrong"):
        assert secret not in seen


@pytest.fixture
def silent() -> Iterator[str]:
    """A Keystone that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v3"


def test_keystone_is_gone(start_guarded: Callable[..., Served], silent: str) -> None:
    closed = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    for url in (address, silent):
        tab = Tab(start_guarded(url))
        asked = time.monotonic()
        assert tab.refused(user="ann", password=PASSWORD) == (503, "http.busy"), url
        assert time.monotonic() - asked < 60
        assert int(tab.seen[-1].headers["retry-after"]) > 0
        assert tab("GET", "/ui/session").json["session"] is None
        assert tab("GET", "/ui").status == 200
