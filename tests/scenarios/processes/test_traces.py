"""Traces as a collector gets them: a span for the request, and within it for its commit."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.scenarios.processes.conftest import eventually

pytestmark = pytest.mark.process

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
SECRET = "s3cret-token"


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """Takes spans by OTLP over HTTP; its address, and what it has got."""
    spans: list[Any] = []

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = ExportTraceServiceRequest()
            told.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            for some in told.resource_spans:
                for scope in some.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", spans
    server.shutdown()
    server.server_close()


def test_a_request_and_its_commit_are_spans_of_the_callers_trace(
    start: Any, collector: tuple[str, list[Any]]
) -> None:
    endpoint, spans = collector
    service = start(
        "--traces",
        "otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
        OTEL_BSP_SCHEDULE_DELAY="100",
    )
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request(
        "POST",
        "/placement/resource_providers",
        json.dumps({"name": SECRET}),
        {
            "x-auth-token": f"admin:{SECRET}",
            "content-type": "application/json",
            "traceparent": f"00-{TRACE}-{CALLER}-01",
        },
    )
    answer = connection.getresponse()
    own_id = answer.headers["x-openstack-request-id"]
    connection.close()
    assert answer.status == 201

    def of_trace() -> dict[str, Any]:
        return {span.name: span for span in list(spans) if span.trace_id.hex() == TRACE}

    name = "POST placement /resource_providers"
    request = eventually(lambda: of_trace().get(name))
    assert request.parent_span_id.hex() == CALLER
    told = {one.key: one.value for one in request.attributes}
    assert told["moorage.request_id"].string_value == own_id
    assert told["http.response.status_code"].int_value == answer.status
    commit = eventually(lambda: of_trace().get("commit"))
    assert commit.parent_span_id == request.span_id
    assert not any(SECRET in str(span) for span in list(spans))
