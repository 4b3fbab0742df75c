"""What is kept for slow clients has a bound; past it the one that costs most has to go."""

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from tests.http.transport.crew import GET, MUCH, WIRE, App, Place, answer, sha, within

from moorage.http.transport.limits import BufferLimit
from moorage.http.transport.server_status import SingleServerStatus

MB = 1024 * 1024
PUT = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"


def backlog(limit: int) -> tuple[BufferLimit[str], Any, SingleServerStatus]:
    status = SingleServerStatus()
    found = BufferLimit[str](limit, status.set_unsent, status.reader_ended)
    return found, found.keep, status


def test_bytes_times_seconds_say_who_has_to_go() -> None:
    found, keep, status = backlog(100)
    assert keep("old and small", 5, 0) == []
    assert keep("large", 60, 50) == []
    assert keep("new", 30, 59) == []
    assert keep("large", 40, 60) == []
    assert status.unsent == 75
    assert keep("newest", 50, 70) == ["large"]
    assert keep("newest", 90, 80) == ["new"]
    assert (status.unsent, status.readers_ended) == (95, 2)
    found.free("newest")
    found.free("large")
    assert status.unsent == 5


def test_who_is_alone_may_pass_the_limit_and_others_may_not_because_of_it() -> None:
    _, keep, _ = backlog(100)
    assert keep("long", 500, 0) == []
    assert keep("long", 400, 1) == []
    assert keep("short", 10, 2) == ["long"]


def test_answers_that_are_left_unread_are_ended_and_those_read_are_not(
    start: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = start(replace(WIRE, unsent=3 * MUCH))
    status = place.status
    with caplog.at_level(logging.WARNING):
        unread = []
        for number in range(4):
            unread.append(place.connect())
            unread[-1].sendall(GET % (b"/whole", b""))
            kept = min(number + 1, 3) * MUCH
            within(lambda kept=kept: status.unsent == kept)  # type: ignore[misc]
        assert len(place.ask(GET % (b"/whole", b""))[2]) == MUCH
    within(lambda: status.unsent <= 3 * MUCH)
    assert 1 <= status.readers_ended <= 2
    assert "connection from 127.0.0.1 ended: its answer is unread" in caplog.text
    within(lambda: len(place.crew) <= 4)


def test_bodies_that_stall_give_room_and_others_are_received(
    app: App, start: Callable[..., Place]
) -> None:
    place = start(replace(WIRE, arriving=3 * MB, body_limit=MB))
    status = place.status
    stalled = []
    for number in range(6):
        stalled.append(place.connect())
        stalled[-1].sendall(PUT % MB + b"x" * (MB - 1))
        if number < 2:
            within(lambda kept=number + 1: status.arriving == kept * (MB - 1))  # type: ignore[misc]
    within(lambda: status.bodies_refused == 3)
    time.sleep(0.5)  # those that are left stall
    for _ in range(3):
        assert place.ask(PUT % MB + b"y" * MB)[2] == sha(b"y" * MB)
    assert status.arriving <= 3 * MB
    within(lambda: len(app.problems) == status.bodies_refused)
    assert all("too many bytes" in str(problem) for problem in app.problems)


def test_a_body_that_is_complete_takes_no_room(start: Callable[..., Place]) -> None:
    place = start(replace(WIRE, arriving=3 * MB, body_limit=MB))
    client = place.connect()
    client.sendall(PUT % 10 + b"hello")
    within(lambda: place.status.arriving == 5)
    client.sendall(b"hello")
    assert answer(client)[2] == sha(b"hellohello")
    assert place.status.arriving == 0
    client.sendall(PUT % 10 + b"hello")
    within(lambda: place.status.arriving == 5)
    client.shutdown(socket.SHUT_WR)
    within(lambda: place.status.arriving == 0)


def test_parts_are_made_as_a_client_takes_them(start: Callable[..., Place], app: App) -> None:
    made = 0

    def parts() -> Any:
        nonlocal made
        for _ in range(64):
            made += 1
            yield b"x" * MB

    def many(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        start_response("200 OK", [])
        return parts()

    app.many = many  # type: ignore[attr-defined]
    place = start()
    client = place.connect()
    client.sendall(GET % (b"/many", b""))
    within(lambda: 0 < place.status.unsent <= 2 * MB)
    assert made < 32
    assert len(answer(client)[2]) == 64 * MB
    assert place.status.unsent == 0
