"""What a service tells of itself: metrics over all workers, readiness, logs without secrets."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.telemetry import table

pytestmark = pytest.mark.process

HTTP = "moorage.http.worker_process"
SOLVER = "moorage.solver.solver_process"
SECRET = "gAAAAABsecret-0123456789-secret"
SENT = "req-00000000-1111-2222-3333-444444444444"


def ask(
    service: Any, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, bytes]:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    try:
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        sent = None
        if body is not None:
            sent, names["content-type"] = json.dumps(body), "application/json"
        connection.request(method, path, sent, names)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def read(service: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of `/metrics`, by name and labels."""
    status, text = ask(service, "GET", "/metrics")
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(found: Any, name: str, **labels: str) -> float:
    return float(found.get((name, tuple(sorted(labels.items()))), 0))


def test_the_counts_of_all_workers_are_one_and_outlive_them(start: Any) -> None:
    service = start("--workers", "2", "--log-level", "warning")
    service.eventually(lambda: len(service.children(HTTP)) == 2)
    body = {"name": "CUSTOM_A"}
    version = {"openstack_api_version": "placement 1.39", "x_auth_token": "admin"}
    assert ask(service, "POST", "/placement/resource_classes", body, **version)[0] == 201
    assert ask(service, "POST", "/placement/resource_classes", body, **version)[0] == 409
    for _ in range(30):
        assert ask(service, "GET", "/placement/resource_providers/nobody", **version)[0] == 404
    route = {"api": "placement", "method": "GET", "route": "/resource_providers/{uuid}"}

    def answered() -> float:
        return value(read(service), "moorage_http_requests_total", status="404", **route)

    assert answered() == 30
    found = read(service)
    assert value(found, "moorage_http_request_duration_seconds_count", **route) == 30
    assert value(found, "moorage_commits_total", outcome="committed") == 1
    assert value(found, "moorage_commits_total", outcome="refused") == 1
    assert value(found, "moorage_worker_starts_total", worker="1") == 1
    # Whoever answers, each worker is in it, and the counts of one that was killed stay.
    service.eventually(lambda: value(read(service), "moorage_ready", worker="2", part="database"))
    for pid in service.children(HTTP):
        os.kill(pid, signal.SIGKILL)
    service.eventually(lambda: len(service.children(HTTP)) == 2)
    assert answered() == 30
    service.eventually(lambda: value(read(service), "moorage_worker_starts_total", worker="1") == 2)


def test_every_metric_of_the_table_is_told_and_no_other(start: Any) -> None:
    service = start("--planners", "1")
    service.eventually(lambda: value(read(service), "moorage_solver_processes") == 1)
    names = {name for name, _ in read(service)}
    told = {row.name for row in table.TABLE}
    stems = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in names}
    assert {stem for stem in stems if not stem.startswith("moorage_")} == set()
    assert stems <= told
    # Until something is counted a metric with labels has no sample.
    assert told - stems <= {
        row.name for row in table.TABLE if row.labels and row is not table.READY
    }


def test_metrics_are_for_the_near_and_for_operators(start: Any, shared: Any) -> None:
    service = start(MOORAGE_METRICS_FROM="192.0.2.0/24")
    assert ask(service, "GET", "/metrics")[0] == 401
    assert ask(service, "GET", "/metrics", x_auth_token="eve", x_roles="member")[0] == 403
    assert ask(service, "GET", "/metrics", x_auth_token="admin")[0] == 200
    assert ask(shared, "GET", "/metrics")[0] == 200
    assert ask(shared, "POST", "/metrics")[0] == 405
    # What a proxy passes on comes from whoever asked the proxy.
    for header in ("x_forwarded_for", "x_forwarded_prefix", "x_real_ip", "forwarded", "via"):
        assert ask(shared, "GET", "/metrics", **{header: "203.0.113.7"})[0] == 401


def test_readiness_follows_schema_and_solvers_and_liveness_does_not(start: Any) -> None:
    import sqlite3

    service = start("--log-level", "warning")
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    [solver] = service.children(SOLVER)
    os.kill(solver, signal.SIGSTOP)  # busy or not, it is there
    assert service.get("/readyz")[0] == 200

    def not_ready_without_solvers() -> bool:
        # Its successor is quick, and may be there before the next look: until one sees none.
        for pid in service.children(SOLVER):
            os.kill(pid, signal.SIGKILL)
        return bool(service.get("/readyz")[1]["checks"]["solver"] == "not ready")

    service.eventually(not_ready_without_solvers)
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    path = service.line.partition("sqlite:///")[2].partition(",")[0]
    with sqlite3.connect(path) as other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
    other.close()
    service.eventually(lambda: service.get("/readyz")[1]["checks"]["schema"] == "not ready")
    assert service.get("/healthz") == (200, {"status": "alive"})
    service.eventually(lambda: "a newer version has changed it" in service.log.read_text())


def test_json_logs_name_the_request_and_no_log_has_a_secret(start: Any) -> None:
    service = start("--log-level", "debug", "--log-format", "json")
    everywhere = {
        "x_auth_token": SECRET,
        "x_service_token": SECRET,
        "x_subject_token": SECRET,
        "authorization": f"Bearer {SECRET}",
        "cookie": f"session={SECRET}",
        "openstack_api_version": f"placement {SECRET}",
        "x_openstack_request_id": SENT,
        "x_forwarded_for": SECRET,
    }
    body = {"name": SECRET, "password": SECRET, "metadata": {"token": SECRET}}
    for method, path, sent in (
        ("GET", f"/placement/traits?token={SECRET}", None),
        ("POST", "/placement/resource_providers", body),
        ("POST", "/v1/ensembles", body),
        ("GET", f"/v1/ensembles/{SECRET}", None),
        ("GET", f"/{SECRET}", None),
        ("PUT", f"/placement/traits/{SECRET}", None),
        ("GET", "/metrics", None),
    ):
        ask(service, method, path, sent, **everywhere)
        ask(service, method, path, sent, **everywhere | {"x_roles": "admin"})
        ask(service, method, path, sent, **everywhere | {"x_auth_token": f"admin:{SECRET}"})
    text = Path(service.log).read_text()
    assert SECRET not in text
    assert "secret" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    asked = [line for line in lines if line.get("global_request_id") == SENT]
    assert len(asked) >= 21
    assert all(re.fullmatch(r"req-[0-9a-f-]{36}", line["request_id"]) for line in asked)
    [traits, *_] = [line for line in asked if line.get("path") == "/placement/traits"]
    assert (traits["method"], traits["logger"]) == ("GET", "moorage.access")
    assert isinstance(traits["status"], int)
    assert isinstance(traits["milliseconds"], float)
