"""Two replicas behind nginx, as `packaging/nginx` has it."""

import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.scenarios.operate.conftest import ROOT
from tests.servers.ports import free_port
from tests.servers.replica import Replica

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

CLIENTS = 16
PROVIDERS = "/placement/resource_providers"
ADMIN = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement 1.39",
    "Content-Type": "application/json",
}
MAIN = """
worker_processes 2;
pid {folder}/pid;
daemon off;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u;
    scgi_temp_path {folder}/s;
    include {folder}/moorage.conf;
}}
"""


@dataclass
class Front:
    """nginx, and what is behind it."""

    port: int
    replicas: list[Replica]

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    program = shutil.which("nginx", path=f"/usr/sbin:/usr/local/sbin:{os.environ['PATH']}")
    if program is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    replicas = []
    for name in ("moorage1", "moorage2"):
        (tmp_path / name).mkdir()
        database = f"sqlite:///{tmp_path}/ledger.db"
        replicas.append(Replica(tmp_path / name, database, "--trusted-proxies", "127.0.0.1"))
    port = free_port()
    try:
        for replica in replicas:
            replica.start()
            replica.up()
        text = (ROOT / "packaging" / "nginx" / "moorage.conf").read_text()
        for number, replica in enumerate(replicas, start=1):
            text = text.replace(f"moorage{number}.example:8778", f"127.0.0.1:{replica.port}")
        text = re.sub(r"server moorage3\.example.*", "", text)
        text = text.replace("listen 8778;", f"listen 127.0.0.1:{port};")
        (tmp_path / "moorage.conf").write_text(text)
        user = "user root;" if os.getuid() == 0 else ""  # who may use this folder
        (tmp_path / "nginx.conf").write_text(MAIN.format(folder=tmp_path, user=user))
        with (tmp_path / "nginx.log").open("w") as log:
            nginx = subprocess.Popen(
                [program, "-e", "stderr", "-c", tmp_path / "nginx.conf"], stderr=log
            )
        try:
            found = Front(port, replicas)
            until = time.monotonic() + 100
            while not answers(found):
                assert time.monotonic() < until, (tmp_path / "nginx.log").read_text()
                time.sleep(0.02)
            yield found
        finally:
            nginx.terminate()
            nginx.wait(60)
    finally:
        for replica in replicas:
            replica.down()


def answers(front: Front) -> bool:
    connection = front.connect()
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_requests_and_answers_of_every_kind_come_through(front: Front) -> None:
    connection = front.connect()

    def ask(method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        connection.request(method, path, body, ADMIN)  # type: ignore[arg-type]
        return connection.getresponse()

    large = json.dumps({"name": "a"}).replace(":", ":" + " " * 5_000_000).encode()
    answer = ask("POST", PROVIDERS, large)
    assert (answer.status, json.load(answer)["name"]) == (200, "a")
    location = answer.getheader("location")
    assert location is not None
    assert location.startswith(f"http://127.0.0.1:{front.port}{PROVIDERS}/")
    other = large.replace(b'"a"', b'"b"')
    answer = ask(
        "POST", PROVIDERS, (other[at : at + 65_536] for at in range(0, len(other), 65_536))
    )
    assert (answer.status, json.load(answer)["name"]) == (200, "b")
    for status in (201, 204):
        answer = ask("PUT", "/placement/traits/CUSTOM_NEW")
        assert (answer.status, answer.read()) == (status, b"")
    answer = ask("HEAD", "/healthz")
    assert (answer.status, answer.read()) == (200, b"")
    answer = ask("GET", PROVIDERS)
    assert {each["name"] for each in json.load(answer)["resource_providers"]} == {"a", "b"}
    assert ask("GET", "/metrics").status == 403
    connection.close()


def test_no_read_fails_while_a_replica_ends(front: Front) -> None:
    stop = threading.Event()
    good: list[int] = []
    bad: list[int | Exception] = []

    def client() -> None:
        connection = front.connect()
        while not stop.is_set():
            try:
                connection.request("GET", f"{PROVIDERS}?name=x", headers=ADMIN)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                bad.append(error)
                connection.close()
                continue
            (good if answer.status == 200 else bad).append(answer.status)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        reach(good, 200)
        front.replicas[0].end()
        reach(good, 200)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert bad == []


def reach(good: list[int], more: int) -> None:
    """Wait for so many more answers."""
    enough, until = len(good) + more, time.monotonic() + 100
    while len(good) < enough:
        assert time.monotonic() < until
        time.sleep(0.01)
