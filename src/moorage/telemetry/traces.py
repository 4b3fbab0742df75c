"""OpenTelemetry spans for each request, and within it for commits, renewals and solves.

The packages are an extra, and imported only when traces are asked for; without them nothing is put
in between, so they cost nothing. Where spans go, and which are kept, is said by the `OTEL_`
variables of the environment, as OpenTelemetry defines them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Outcome, Problem
    from moorage.http.wsgi import Application, Environ, ExcInfo, Headers, StartResponse
    from moorage.usecases.ports import Solver

T = TypeVar("T")

_NAME: Final = "moorage"
_FROM_CALLER: Final = {"HTTP_TRACEPARENT": "traceparent", "HTTP_TRACESTATE": "tracestate"}
_ERROR: Final = 500


class StoreObserver(Protocol):
    """Observer of the store."""

    def commit(self, work: Callable[[], T]) -> T:
        """Run one try to commit."""

    def refresh(self, work: Callable[[], T]) -> T:
        """Run an update of the snapshot."""


class Traces:
    """Wraps the application, the store's observer and the solver in spans.

    Raises:
        InvalidDescription: the packages are not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import propagate, trace  # noqa: PLC0415 - an extra
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError as error:
            raise InvalidDescription(
                f"traces need the packages of the extra moorage[otel]: {error}", path="traces"
            ) from error
        named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", _NAME)}
        provider = TracerProvider(resource=Resource.create(named))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = provider.get_tracer(_NAME, version(_NAME))
        self._propagate = propagate
        self._kind = trace.SpanKind.SERVER
        self._failed = trace.StatusCode.ERROR

    def app(self, app: Application) -> Application:
        """The application with a span for each request; a caller's trace is continued."""

        def traced(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            sent = {name: environ[key] for key, name in _FROM_CALLER.items() if key in environ}
            method = environ["REQUEST_METHOD"]
            context = self._propagate.extract(sent)
            with self._tracer.start_as_current_span(method, context, self._kind) as span:

                def start(status: str, headers: Headers, exc_info: ExcInfo | None = None, /) -> Any:  # noqa: ANN401 - PEP 3333
                    span.set_attribute("http.response.status_code", int(status[:3]))
                    if int(status[:3]) >= _ERROR:
                        span.set_status(self._failed)
                    return start_response(status, headers, exc_info)

                chunks = app(environ, start)
                _describe(span, environ, method)
                return chunks

        return traced

    def watch(self, inner: StoreObserver) -> StoreObserver:
        """The observer with a span around each operation."""
        return _TracedStoreObserver(inner, self._tracer)

    def solver(self, inner: Solver) -> Solver:
        """The solver with a span around each solve."""
        return _TracedSolver(inner, self._tracer)


def _describe(span: Any, environ: Environ, method: str) -> None:  # noqa: ANN401 - OpenTelemetry's
    """Attributes known only at the end. Path, query and headers may hold secrets and stay out."""
    route = environ.get("moorage.route")
    mount = environ.get("moorage.mount", "house")
    if route is not None:
        span.update_name(f"{method} {mount} {route}")
        span.set_attribute("http.route", route)
    for name, value in (
        ("http.request.method", method),
        ("moorage.api", mount),
        ("moorage.request_id", environ.get("moorage.request_id")),
        ("moorage.global_request_id", environ.get("moorage.global_request_id")),
    ):
        if value is not None:
            span.set_attribute(name, value)


@dataclass(frozen=True, slots=True)
class _TracedStoreObserver:
    """An observer of the store with spans."""

    inner: StoreObserver
    tracer: Any

    def commit(self, work: Callable[[], T]) -> T:
        """Run one try to commit in a span."""
        with self.tracer.start_as_current_span("commit"):
            return self.inner.commit(work)

    def refresh(self, work: Callable[[], T]) -> T:
        """Run an update of the snapshot in a span."""
        with self.tracer.start_as_current_span("refresh snapshot"):
            return self.inner.refresh(work)


@dataclass(frozen=True, slots=True)
class _TracedSolver:
    """A solver with spans."""

    inner: Solver
    tracer: Any

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """Solve in a span."""
        with self.tracer.start_as_current_span("solve") as span:
            span.set_attribute("moorage.members", len(problem.members))
            span.set_attribute("moorage.hosts", len(problem.hosts))
            outcome = self.inner.solve(problem, time_limit=time_limit, seed=seed)
            span.set_attribute("moorage.verdict", outcome.verdict.value)
            span.set_attribute("moorage.strategy", outcome.solver)
            return outcome
