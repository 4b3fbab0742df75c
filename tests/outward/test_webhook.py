"""A webhook over real sockets: signed, bounded, never led elsewhere."""

import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.outward.conftest import MESSAGE, Answer, Receiver, receiving, told

from moorage.outward.webhook import SIGNATURE, WebhookClient
from moorage.usecases.effect_dispatch import OutwardFailure


def test_it_is_told_with_the_id_and_a_signature(receiver: Receiver) -> None:
    outcome = WebhookClient(f"{receiver.url}/hook/secret?token=x", "s3cret", 20.0)(MESSAGE)
    (request,) = receiver.requests
    assert (request.method, request.path) == ("POST", "/hook/secret?token=x")
    assert told(request) == MESSAGE.body
    assert request.headers["idempotency-key"] == "effect-1"
    assert request.headers["content-type"] == "application/json"
    expected = hmac.new(b"s3cret", request.body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE.lower()] == f"sha256={expected}"
    assert outcome.endswith("answered 204")
    assert "secret" not in outcome


def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    WebhookClient(receiver.url, "", 20.0)(MESSAGE)
    assert SIGNATURE.lower() not in receiver.requests[0].headers


@pytest.mark.parametrize("status", [301, 307, 400, 404, 500, 503])
def test_any_other_answer_is_a_failure_and_nobody_is_led_elsewhere(
    receiver: Receiver, status: int
) -> None:
    def answer(_: object) -> Answer:
        return Answer(status, headers={"Location": f"{receiver.url}/elsewhere"})

    with (
        receiving(answer) as other,
        pytest.raises(OutwardFailure, match=f"answered {status}"),
    ):
        WebhookClient(other.url, "", 20.0)(MESSAGE)
    assert receiver.requests == []


def test_where_nobody_listens_is_a_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OutwardFailure, match="refused"):
            WebhookClient(url, "", 20.0)(MESSAGE)


def test_a_name_that_means_nothing_is_a_failure() -> None:
    with pytest.raises(OutwardFailure):
        WebhookClient("http://nobody.invalid/", "", 20.0)(MESSAGE)


@contextmanager
def dripping() -> Iterator[str]:
    """Sends a byte of a head now and then, for ever."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        stop.set()
        thread.join()


def test_who_never_comes_to_an_end_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OutwardFailure):
            WebhookClient(url, "", 0.4)(MESSAGE)
    with dripping() as url, pytest.raises(OutwardFailure, match=r"in 0\.4 s"):
        WebhookClient(url, "", 0.4)(MESSAGE)
