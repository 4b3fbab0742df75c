"""Sessions of the page over HTTP: several workers, restarts, and replicas of one database."""

import http.client
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import Served

pytestmark = pytest.mark.process

Start = Callable[..., Served]


def ask(served: Served, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """One request on a connection of its own: any worker may take it."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"sec-fetch-site": "same-origin", **names})
    answer = connection.getresponse()
    answer.text = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def login(served: Served, **body: str) -> dict[str, str]:
    """The headers with which the page then asks."""
    answer = ask(served, "POST", "/ui/session", body)
    assert answer.status == 200, answer.text
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"moorage_session_{served.port}=")
    return {
        "cookie": cookie.partition(";")[0],
        "x_moorage_session": json.loads(answer.text)["session"]["id"],
    }


def test_every_worker_knows_the_session(start: Start) -> None:
    served = start("--workers", "2")
    own = login(served, role="admin")
    served.eventually(lambda: len(served.children("worker_process")) == 2)
    pages = set()
    for _ in range(40):
        assert ask(served, "GET", "/v1/fleet", **own).status == 200
        pages.add(ask(served, "GET", "/ui").text)
    assert len(pages) == 1, "both have the same digest"


def test_a_session_goes_on_after_a_restart_and_with_a_replica(start: Start, tmp_path: Path) -> None:
    database = ("--database", f"sqlite:///{tmp_path / 'one.db'}")
    first = start(*database)
    own = login(first, role="member", project="shop")
    ensemble = {"ensemble": {"name": "mine", "members": []}}
    made = ask(first, "POST", "/v1/ensembles", ensemble, content_type="application/json", **own)
    assert made.status == 201, made.text
    first.process.send_signal(signal.SIGHUP)
    first.eventually(lambda: "reload finished" in first.log.read_text())
    assert ask(first, "GET", "/v1/ensembles", **own).status == 200
    first.process.send_signal(signal.SIGTERM)
    assert first.ended() == 0
    again, replica = start(*database, "--port", str(first.port)), start(*database)
    assert again.port == first.port
    found = ask(again, "GET", "/v1/ensembles", **own)
    assert [one["name"] for one in json.loads(found.text)["ensembles"]] == ["mine"]
    behind_a_proxy = {**own, "host": f"127.0.0.1:{first.port}"}
    assert ask(replica, "GET", "/v1/ensembles", **behind_a_proxy).status == 200
    other = start("--database", f"sqlite:///{tmp_path / 'other.db'}")
    assert ask(other, "GET", "/v1/ensembles", **behind_a_proxy).status == 401


def test_requests_that_search_pass_a_planner_without_the_cookie(start: Start) -> None:
    served = start("--planners", "1")
    own = login(served, role="member", project="shop")
    query = "/v1/capacity/windows?resources=VCPU:1&count=1&duration=PT2H"
    answers = {ask(served, "GET", query, **own).status for _ in range(3)}
    assert answers == {200}
    assert ask(served, "GET", query, cookie=own["cookie"]).status == 401
    assert ask(served, "GET", query, **{**own, "sec_fetch_site": "cross-site"}).status == 403


def test_modules_come_whole_over_http(start: Start) -> None:
    served = start()
    page = ask(served, "GET", "/ui/fleet?class=VCPU").text.decode()
    base = page.partition("/main.js")[0].rpartition('"')[2]
    for name in ("main.js", "style.css", "lib/page.js", "vendor/preact.js"):
        whole = ask(served, "GET", f"{base}/{name}")
        packed = ask(served, "GET", f"{base}/{name}", accept_encoding="gzip")
        assert (whole.status, packed.status) == (200, 200), name
        assert len(packed.text) < len(whole.text)
        kept = ask(served, "GET", f"{base}/{name}", if_none_match=whole.headers["etag"])
        assert (kept.status, kept.text) == (304, b"")
    raw = served.raw(f"GET {base}/../../login.py HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert raw.recv(12) == b"HTTP/1.1 404"
    raw.close()


@pytest.mark.parametrize("options", [("--mount", "web="), ("--mount", "native=")])
def test_it_can_be_turned_off(start: Start, options: tuple[str, ...]) -> None:
    served = start(*options)
    assert "web" not in served.line
    assert ask(served, "GET", "/ui").status == 404
    served.process.send_signal(signal.SIGTERM)
    assert served.process.stdout is not None
    assert served.process.stdout.read() == ""


def test_a_key_file_that_cannot_be_used(run: Any, tmp_path: Path) -> None:
    ran = run("--session-key-file", "nowhere")
    assert (ran.returncode, "session_key_file" in ran.stderr) == (2, True)
