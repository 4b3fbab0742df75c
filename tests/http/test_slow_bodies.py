"""Whose connections may be cut because a body is late."""

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from moorage.http.slow_bodies import SlowBodies

BODY, IDLE = 60.0, 30.0


class Slow(io.BytesIO):
    """A body that comes when the test ends."""

    def __init__(self, waits: Callable[[], object]) -> None:
        super().__init__()
        self._waits = waits

    def read(self, size: int | None = -1, /) -> bytes:
        self._waits()
        return b""


@contextmanager
def request(bodies: SlowBodies, address: str, *, reads: bool) -> Iterator[None]:
    """A request in a thread of its own; it waits for its body, or works."""
    waits, end = threading.Event(), threading.Event()

    def wait() -> None:
        waits.set()
        end.wait(60)

    def work() -> None:
        environ: dict[str, Any] = {
            "REMOTE_ADDR": address,
            "CONTENT_LENGTH": "9",
            "wsgi.input": Slow(wait),
        }
        bodies.begin(environ)
        if reads:
            environ["wsgi.input"].read(9)
        else:
            wait()
        bodies.end()

    thread = threading.Thread(target=work)
    thread.start()
    waits.wait(60)
    try:
        yield
    finally:
        end.set()
        thread.join(60)


@pytest.mark.parametrize(
    ("reading", "working", "age", "late"),
    [
        (["a"], [], BODY + 5, {"a"}),
        (["a"], [], BODY - 5, set()),
        (["a", "b"], ["b"], BODY + 5, {"a"}),
        ([], ["a"], BODY + 5, set()),
    ],
)
def test_who_is_late(reading: list[str], working: list[str], age: float, late: set[str]) -> None:
    bodies = SlowBodies(BODY, IDLE)
    with ExitStack() as stack:
        for address in reading:
            stack.enter_context(request(bodies, address, reads=True))
        for address in working:
            stack.enter_context(request(bodies, address, reads=False))
        assert bodies.running
        assert bodies.late(time.monotonic() + age) == late
    assert not bodies.running


@pytest.mark.parametrize(("ahead", "late"), [(BODY - IDLE - 10, {"a"}), (BODY - IDLE + 10, set())])
def test_a_request_on_a_connection_that_was_idle_before_is_spared(
    monkeypatch: pytest.MonkeyPatch, ahead: float, late: set[str]
) -> None:
    bodies = SlowBodies(BODY, IDLE)
    began = time.monotonic()
    with request(bodies, "a", reads=True), ExitStack() as stack:
        # The second one began so much later that it has run for `ahead` when they are looked at.
        monkeypatch.setattr("moorage.http.slow_bodies.time.monotonic", lambda: began + 100 - ahead)
        stack.enter_context(request(bodies, "a", reads=False))
        assert bodies.late(began + 100) == late
