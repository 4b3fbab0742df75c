"""Clients that send half, too much, nonsense, or all at once: the server keeps serving."""

import json
import re
import threading
from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.process

HEAD = "{} HTTP/1.1\r\nHost: a\r\nX-Auth-Token: admin\r\nContent-Type: application/json\r\n"


def head(line: str, *headers: str) -> bytes:
    return (HEAD.format(line) + "".join(f"{header}\r\n" for header in headers) + "\r\n").encode()


def status_of(connection: Any) -> int:
    with connection:
        return int(connection.recv(4096).split()[1])


def test_placement_answers_where_it_is_mounted(shared: Any) -> None:
    status, document = shared.get("/placement/", x_auth_token="")
    assert status == 200
    assert document["versions"][0]["min_version"] == "1.0"
    status, refused = shared.get("/placement/resource_providers")
    assert (status, refused["code"]) == (401, "401 Unauthorized")
    assert shared.get("/placement/resource_providers", x_auth_token="admin")[0] == 200
    assert shared.get("/placement/resource_providers", x_auth_token="eve")[0] == 403


def test_the_limit_on_bodies_holds_with_and_without_a_length(shared: Any) -> None:
    put = "POST /placement/resource_providers"
    assert status_of(shared.raw(head(put, "Content-Length: 65537"))) == 413
    chunk = b"%x\r\n" % 70_000 + b"x" * 70_000 + b"\r\n0\r\n\r\n"
    assert status_of(shared.raw(head(put, "Transfer-Encoding: chunked") + chunk)) == 413
    body = json.dumps({"name": "chunked"}).encode()
    whole = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    assert status_of(shared.raw(head(put, "Transfer-Encoding: chunked") + whole)) == 201


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02 nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /placement/\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        head("GET /v1/x", "Content-Length: hi mom"),
        head("GET /placement/x%FF"),
        head("GET /placement/traits?name=%FF"),
        head("GET /x", "X-Bad: a\x00b"),
    ],
)
def test_nonsense_is_refused(shared: Any, data: bytes) -> None:
    with shared.raw(data) as connection:
        answer = connection.recv(4096)
    assert not answer or answer.split()[1] == b"400"
    assert shared.get("/healthz")[0] == 200


def test_a_client_that_vanishes_half_way_changes_nothing(shared: Any) -> None:
    body = json.dumps({"name": "half"}).encode()
    for cut in (0, 5, len(body) - 1):
        sent = head("POST /placement/resource_providers", f"Content-Length: {len(body)}")
        shared.raw(sent + body[:cut]).close()
    log = shared.log
    shared.eventually(lambda: len(re.findall(r"POST \S+ 499", log.read_text())) >= 3)
    assert shared.get("/placement/resource_providers?name=half", x_auth_token="admin") == (
        200,
        {"resource_providers": []},
    )


def test_many_half_sent_bodies_leave_room_for_others(shared: Any) -> None:
    sent = head("POST /placement/resource_providers", "Content-Length: 100") + b"{"
    held = [shared.raw(sent) for _ in range(150)]
    try:
        for _ in range(20):
            assert shared.get("/placement/resource_providers", x_auth_token="admin")[0] == 200
    finally:
        for connection in held:
            connection.close()
    status, _ = shared.get("/placement/resource_providers", x_auth_token="admin")
    assert status == 200


def test_hundreds_of_connections_are_all_served(shared: Any) -> None:
    statuses: Counter[int] = Counter()
    ids: set[bytes] = set()
    lock = threading.Lock()

    def ask() -> None:
        with shared.raw(head("GET /placement/resource_providers", "Connection: close")) as wire:
            answer = b"".join(iter(lambda: wire.recv(65536), b""))
        [own_id] = re.findall(rb"x-openstack-request-id: (\S+)", answer)
        with lock:
            statuses[int(answer.split()[1])] += 1
            ids.add(own_id)

    threads = [threading.Thread(target=ask) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert statuses == {200: 300}
    assert len(ids) == 300


def test_no_token_is_ever_logged(shared: Any) -> None:
    shared.get("/placement/traits?x-auth-token=inquery", x_auth_token="s3cret-token")
    text = shared.eventually(lambda: "GET /placement/traits" in shared.log.read_text()) and (
        shared.log.read_text()
    )
    assert "s3cret" not in text
    assert "inquery" not in text
