"""What takes long: who stops waiting is told what becomes of it, and may ask again."""

import io
import os
import signal
import socket
import sys
from contextlib import closing
from threading import Thread
from typing import Any

import pytest
from tests.cli.conftest import Cli

from moorage.cli.progress import interruptible
from moorage.client.errors import NoAnswer, Unreachable

ID = "7f1c9a52-5a1e-4c55-9b7a-2f4f4b1f6f01"
SERIES = ("lease", "create", "--flavor", "m1.small", "--duration", "1h")
DAILY = (*SERIES, "--every", "daily", "--times", "2", "--start", "2027-05-03")
ENSEMBLE = ("ensemble", "create", "--server", "m1.small", "--name", "shop")
OFFER = ("offer", "create", "--flavor", "m1.small", "--duration", "1h")


def _interrupting(listening: socket.socket) -> None:
    """Take one request, and press Ctrl-C instead of answering it."""
    taken, _ = listening.accept()
    with closing(taken):
        taken.recv(65536)
        os.kill(os.getpid(), signal.SIGINT)
        taken.recv(65536)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*DAILY, "--id", ID), "moorage series list"),
        ((*SERIES, "--id", ID), "moorage lease list"),
        ((*OFFER, "--id", ID), "moorage offer list"),
    ],
)
def test_whoever_stops_waiting_is_told_that_the_service_goes_on(
    words: tuple[str, ...], told: str, offline: Cli
) -> None:
    said = interrupted(offline, *words)
    assert said.err.startswith(f"the service continues the request: see `{told}`"), said
    assert f"a repeat with --id {ID} " in said.err
    assert said.err.count("\n") == 1


def test_so_is_who_creates_an_ensemble(offline: Cli) -> None:
    told = "the service continues the request: see `moorage ensemble show shop`\n"
    assert interrupted(offline, *ENSEMBLE).err == told
    assert interrupted(offline, *ENSEMBLE, "--dry-run").err == ""


def interrupted(offline: Cli, *words: str) -> Any:
    """What a command says that is interrupted before it gets an answer."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        silent = Thread(target=_interrupting, args=(listening,), daemon=True)
        silent.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        said = offline("--endpoint", url, *words)
        silent.join(10)
    assert said.status == 130
    return said


@pytest.mark.parametrize("words", [DAILY, SERIES, OFFER])
def test_an_id_is_a_uuid(words: tuple[str, ...], offline: Cli) -> None:
    said = offline(*words, "--id", "mine")
    assert said.status == 2
    assert "an id is a UUID, not 'mine'" in said.err


@pytest.mark.parametrize(
    ("error", "told"),
    [(NoAnswer("x", "no answer in time"), "it goes on\n"), (Unreachable("x", "refused"), "")],
)
def test_only_what_was_sent_goes_on(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    with pytest.raises(Unreachable), interruptible("looking", "it goes on"):
        raise error
    assert err.getvalue() == told


@pytest.mark.process
def test_what_is_asked_again_under_its_id_is_done_once(sim: Any) -> None:
    first, again = (sim.body(*DAILY, "--name", "once", "--id", ID) for _ in range(2))
    made = first["series"]["id"]
    assert again["series"]["id"] == made != ID
    assert len(sim.body("lease", "list", "--series", made)["leases"]) == 2
    other = sim(*DAILY, "--name", "another", "--id", ID)
    assert (other.status, "already exists" in other.err) == (4, True), other
    sim("series", "cancel", made)
