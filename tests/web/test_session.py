"""Sessions of browsers: who gets one, for what it counts, and who cannot make use of it."""

import base64
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import HOST, Browser, MakeBrowser, code_of

from moorage.api.native import rules
from moorage.web.session_cookie import LONGEST, Session, SessionCookies

ENSEMBLE = {"ensemble": {"name": "shop", "members": []}}


def test_without_a_session_the_page_learns_how_to_log_in(
    browser: MakeBrowser, token_file: tuple[str, dict[str, str]]
) -> None:
    found = browser()("GET", "/ui/session")
    assert (found.status, found.headers["cache-control"]) == (200, "no-store")
    assert found.json["session"] is None
    assert found.json["login"] == {"auth": "noauth2", "methods": ["role"]}
    assert found.json["simulation"] is False
    by_token = browser(auth="token-file", token_file=token_file[0])("GET", "/ui/session")
    assert by_token.json["login"] == {"auth": "token-file", "methods": ["token"]}


@pytest.mark.parametrize(
    ("body", "user", "project"),
    [
        ({"role": "admin"}, "admin", "admin"),
        ({"role": "member", "project": "shop"}, "shop-user", "shop"),
        ({"role": "reader", "project": "shop", "user": "ann"}, "ann", "shop"),
    ],
)
def test_a_role_is_believed_under_noauth2(
    browser: MakeBrowser, body: dict[str, str], user: str, project: str
) -> None:
    see = browser()
    found = see.login(**body)
    assert found["user"] == {"id": user, "name": user}
    assert found["project"] == {"id": project, "name": project}
    assert found["projects"] == [found["project"]]
    assert found["roles"] == [body["role"]]
    assert found["operator"] is (body["role"] == "admin")
    assert found["rules"].keys() == rules.KNOWN.keys() - rules._ALIASES.keys()
    assert found["rules"]["moorage:ensembles:list"]
    assert found["rules"]["moorage:ensembles:create"] is (body["role"] != "reader")
    assert found["rules"]["moorage:fleet:show"] is (body["role"] == "admin")
    assert see("GET", "/ui/session").json["session"] == found


def test_the_rules_of_a_session_are_those_of_the_api(browser: MakeBrowser, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('"moorage:ensembles:list": "role:admin"\n"moorage:fleet:show": "role:reader"\n')
    see = browser(policy_file=str(file))
    found = see.login(role="reader", project="shop")["rules"]
    for rule, path in (("ensembles:list", "/v1/ensembles"), ("fleet:show", "/v1/fleet")):
        assert found[f"moorage:{rule}"] is (see("GET", path).status == 200), rule
    assert (found["moorage:ensembles:list"], found["moorage:fleet:show"]) == (False, True)


def test_a_token_is_pasted_and_never_seen_again(
    browser: MakeBrowser,
    token_file: tuple[str, dict[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    path, tokens = token_file
    see = browser(auth="token-file", token_file=path)
    answers = [see("POST", "/ui/session", {"token": f" {tokens['member']}\n"})]
    session = answers[0].json["session"]
    assert (session["user"]["id"], session["roles"]) == ("member-user", ["member"])
    see.session = session["id"]
    made = see("POST", "/v1/ensembles", ENSEMBLE)
    assert made.status == 201, made.body
    answers += [made, see("GET", "/ui/session"), see("GET", "/v1/ensembles")]
    assert [one["project_id"] for one in answers[-1].json["ensembles"]] == ["shop"]
    assert see("GET", "/v1/fleet").status == 403
    wrong = tokens["member"][:-4] + "AAAA"
    for refused in ({"token": wrong}, {"token": "x"}, {"token": ""}, {"token": "é"}):
        answers.append(see("POST", "/ui/session", refused))
        assert code_of(answers[-1]) == (401, "session.refused")
    switched = see("POST", "/ui/session", {"project": "other"})
    assert code_of(switched) == (403, "session.refused")
    assert see("GET", "/v1/ensembles").status == 200, "the session stays as it was"
    seen = b"".join(one.body for one in answers) + "".join(see.set_cookies).encode()
    for secret in (*tokens.values(), wrong):
        assert secret.encode() not in seen
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"role": "admin", "token": "x"},
        {"role": "king"},
        {"role": "admin", "user": "a:b"},
        {"role": "admin", "user": "ä"},
        {"role": "admin", "project": "with space"},
        {"role": 1},
        {"user": "ann"},
        {"password": "pw"},
        {"token": "gAAAAsecret"},
        {"user": "ann", "password": "pw"},
        {"application_credential": {"id": "x"}},
        {"application_credential": {"id": "x", "secret": "s"}, "role": "admin"},
        {"role": "admin", "more": "gAAAAsecret"},
    ],
)
def test_a_body_that_is_no_login(browser: MakeBrowser, body: object) -> None:
    answer = browser()("POST", "/ui/session", body)
    assert code_of(answer) == (400, "http.bad_request")
    assert b"gAAAA" not in answer.body


def test_a_body_that_is_long_or_no_json(browser: MakeBrowser) -> None:
    see = browser()
    long = see("POST", "/ui/session", {"role": "x" * 70_000})
    assert code_of(long) == (413, "http.body_too_large")
    environ = {"HTTP_HOST": HOST, "HTTP_SEC_FETCH_SITE": "same-origin"}
    for body in (b"", b"{", b"[" * 5000, b'{"role": "\xff"}'):
        answer = see.client("POST", "/ui/session", body=body, environ=environ)
        assert answer.status == 400, body


def test_a_session_counts_for_the_native_api_alone(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    assert see("GET", "/v1/ensembles").status == 200
    for path in ("/placement/resource_providers", "/reservation/v1/leases", "/compute/x"):
        assert see("GET", path).status == 401, path
    with_token = see("GET", "/placement/resource_providers", x_auth_token="admin")
    assert with_token.status == 200


def test_a_token_comes_before_the_cookie(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    assert see("GET", "/v1/fleet", x_auth_token="ann:shop", x_roles="reader").status == 403
    see.session = None
    assert see("GET", "/v1/fleet", x_auth_token="admin").status == 200


def test_headers_beside_a_session_say_nothing_of_its_caller(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="reader", project="shop")
    grander = {"x_roles": "admin", "x_project_id": "other", "openstack_system_scope": "all"}
    assert see("GET", "/v1/fleet", **grander).status == 403
    assert see("GET", "/ui/session", **grander).json["session"]["project"]["id"] == "shop"


def test_the_cookie_is_kept_from_scripts_and_other_sites(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    assert see.set_cookies[-1].endswith("; Path=/; HttpOnly; SameSite=Strict")
    see.environ = {"wsgi.url_scheme": "https"}
    see.login(role="admin")
    assert see.set_cookies[-1].endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/ui/session", {"role": "admin"}),
        ("POST", "/ui/session", {"project": "other"}),
        ("DELETE", "/ui/session", None),
        ("POST", "/v1/ensembles", ENSEMBLE),
        ("DELETE", "/v1/ensembles/00000000-0000-0000-0000-000000000000", None),
    ],
)
def test_other_sites_change_nothing(
    browser: MakeBrowser, method: str, path: str, body: object
) -> None:
    see = browser()
    see.login(role="admin")
    see.site = None
    foreign: list[dict[str, str]] = [
        {"sec_fetch_site": "cross-site", "origin": f"http://{HOST}"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"origin": "https://evil.example"},
        {"origin": f"https://{HOST}"},
        {"origin": f"http://{HOST}:81"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": "null"},
        {},
    ]
    for headers in foreign:
        assert code_of(see(method, path, body, **headers)) == (403, "session.cross_site"), headers
    assert see("GET", "/ui/session").json["session"]["id"] == see.session
    own = see(method, path, body, origin=f"http://{HOST.upper()}")
    assert own.status in {200, 201, 204, 404, 428}, own.body


def test_other_sites_read_nothing(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    for site in ("cross-site", "same-site"):
        see.site = site
        for path in ("/v1/ensembles", "/ui/session"):
            assert code_of(see("GET", path)) == (403, "session.cross_site"), (site, path)
    see.site = "none"
    assert see("GET", "/ui/session").json["session"]["id"] == see.session


def test_another_login_in_the_same_browser_is_noticed(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    other = see.tab()
    assert other.session == see.session
    other.login(role="member", project="shop")
    for method, path in (("GET", "/v1/ensembles"), ("POST", "/v1/ensembles")):
        body = ENSEMBLE if method == "POST" else None
        assert code_of(see(method, path, body)) == (401, "session.changed")
    see.session = None
    assert code_of(see("GET", "/v1/ensembles")) == (401, "session.changed")
    see.session = "é"
    assert code_of(see("GET", "/v1/ensembles")) == (401, "session.changed")
    assert see.tab()("GET", "/v1/ensembles").status == 200


def test_a_session_changes_its_project(browser: MakeBrowser) -> None:
    see = browser()
    first = see.login(role="member", project="shop", user="ann")
    assert see("POST", "/v1/ensembles", ENSEMBLE).status == 201
    second = see.login(project="other")
    assert second["id"] != first["id"]
    assert (second["user"]["id"], second["roles"]) == ("ann", ["member"])
    assert second["expires_at"] == first["expires_at"], "it lasts no longer for that"
    assert see("GET", "/v1/ensembles").json["ensembles"] == []
    see("DELETE", "/ui/session")
    assert code_of(see("POST", "/ui/session", {"project": "shop"})) == (401, "session.refused")


def test_logging_out(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    gone = see("DELETE", "/ui/session")
    assert (gone.status, gone.body, see.cookies) == (204, b"", {})
    assert see("GET", "/v1/ensembles").status == 401
    assert see("GET", "/ui/session").json["session"] is None
    assert see("DELETE", "/ui/session").status == 204


def test_a_cookie_that_was_tampered_with_is_none(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="reader", project="shop")
    [(name, good)] = see.cookies.items()
    worse = [good[:-6] + "AAAAA=", good[:40] + "A" + good[41:], good[5:], "é", "x", "", good * 9]
    for value in worse:
        see.cookies[name] = value
        assert see("GET", "/v1/ensembles").status == 401, value
        assert see("GET", "/ui/session").json["session"] is None
    see.cookies[name] = good
    assert see("GET", "/v1/ensembles").status == 200


def test_a_session_ends(browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    see = browser(session_lifetime="1h")
    see.login(role="admin")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_500)
    assert see("GET", "/v1/ensembles").status == 200
    monkeypatch.setattr(time, "time", lambda: now + 3_601)
    assert see("GET", "/v1/ensembles").status == 401
    assert see("GET", "/ui/session").json["session"] is None


def test_a_session_of_one_strategy_is_none_of_another(
    browser: MakeBrowser, token_file: tuple[str, dict[str, str]]
) -> None:
    believed = browser()
    believed.login(role="admin")
    other = browser(auth="token-file", token_file=token_file[0])
    strict = Browser(other.client, believed.cookies, session=believed.session)
    assert strict("GET", "/v1/ensembles").status == 401


def test_a_token_that_no_cookie_can_hold() -> None:
    cookies = SessionCookies(lambda: (base64.urlsafe_b64encode(bytes(32)),), "keystone")
    environ: dict[str, Any] = {"wsgi.url_scheme": "http", "HTTP_HOST": HOST}

    def sealed(length: int) -> str:
        session = Session(
            id="x", auth="keystone", headers={"HTTP_X_AUTH_TOKEN": "t" * length}, ends=2**40
        )
        return cookies.seal(environ, session)

    fits = sealed(2_700).partition(";")[0]
    assert len(fits) <= LONGEST
    found = cookies.open({**environ, "HTTP_COOKIE": f"a=b; {fits}"})
    assert found is not None
    assert found.headers == {"HTTP_X_AUTH_TOKEN": "t" * 2_700}
    with pytest.raises(Exception, match="too long for a browser's cookie"):
        sealed(3_100)


def test_two_services_on_one_host_keep_their_sessions_apart(browser: MakeBrowser) -> None:
    see = browser()
    see.environ = {"HTTP_HOST": "127.0.0.1:8778"}
    see.login(role="admin")
    other = Browser(see.client, see.cookies, environ={"HTTP_HOST": "127.0.0.1:8780"})
    other.login(role="reader")
    assert len(see.cookies) == 2
    assert see("GET", "/v1/fleet").status == 200


def key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def test_keys_of_a_file_are_changed_without_ending_sessions(
    browser: MakeBrowser, tmp_path: Path
) -> None:
    file = tmp_path / "session.keys"
    old, new = key(), key()
    file.write_text(f"{old}\n")
    see = browser(session_key_file=str(file))
    see.login(role="admin")
    file.write_text(f"{new}\n{old}\n")

    def another() -> Browser:
        made = browser(session_key_file=str(file))
        return Browser(made.client, see.cookies, session=see.session)

    assert another()("GET", "/v1/fleet").status == 200
    file.write_text(new)
    assert another()("GET", "/v1/fleet").status == 401


@pytest.mark.parametrize(
    "text",
    ["", "\n", "short", "é" * 44, key()[:-4], f"{key()}\nx"],
    ids=["empty", "blank", "short", "not ASCII", "cut", "a second line"],
)
def test_a_file_without_usable_keys_is_refused(
    browser: MakeBrowser, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "session.keys"
    file.write_text(text)
    with pytest.raises(Exception, match="session_key_file") as refused:
        browser(session_key_file=str(file))
    assert not text.strip() or text.strip() not in str(refused.value)


def test_a_tenants_session_finds_what_is_of_its_project(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="member", project="shop")
    made = see("POST", "/v1/ensembles", ENSEMBLE).json["ensemble"]["id"]
    see.login(role="member", project="other")
    assert see("GET", "/v1/ensembles").json["ensembles"] == []
    assert see("GET", f"/v1/ensembles/{made}").status == 404
    assert json.dumps(see("GET", "/ui/session").json).count("shop") == 0
    see.login(role="admin")
    assert see("GET", f"/v1/ensembles/{made}").status == 200


def test_only_a_cookie_loads_cryptography() -> None:
    code = (
        "import sys\nfrom tests.http.conftest import Client\nfrom moorage.app import create_app\n"
        "from moorage.settings import configure, read\n"
        "send = Client(create_app(configure(read({'database': 'sqlite://'}, {}, ()))))\n"
        "own = {'HTTP_HOST': 'h', 'HTTP_SEC_FETCH_SITE': 'same-origin'}\n"
        "for method, path, body in (('GET', '/v1/fleet', b''), ('GET', '/ui/session', b''),"
        " ('POST', '/ui/session', b'{\"role\": \"admin\"}')):\n"
        "    assert send(method, path, body=body, environ=own).status == 200\n"
        "    print('cryptography' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["False", "False", "True"]
