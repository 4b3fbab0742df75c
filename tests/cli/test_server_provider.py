"""`moorage server provider`."""

import json
from typing import Any

import pytest

SERVER = "5c0f0000-0000-4000-8000-0000000000c1"


@pytest.fixture
def games(sim: Any) -> Any:
    """The command line of a project that has a server."""
    cli = sim.as_tenant("games")
    made = cli("ensemble", "create", "--server", "m1.small", "--name", "lobby", "-f", "json")
    assert made.status == 0, made
    claim = cli("claim", "create", "lobby", "server[0]", "--flavor", "m1.small", "-f", "json")
    active = cli("claim", "set", claim.body["claim"]["id"], "--active", "--server", SERVER)
    assert active.status == 0, active
    return cli


def test_it_is_set_shown_shared_and_deleted(sim: Any, games: Any) -> None:
    words = ("server", "provider", "set", SERVER, "CUSTOM_SESSION=7", "--trait", "CUSTOM_PROXY")
    dry = games(*words, "--dry-run", "-f", "json")
    assert (dry.status, dry.body["dry_run"]) == (0, True)
    voice = sim.as_tenant("voice")
    assert voice.body("server", "provider", "list")["server_providers"] == []
    assert games(*words, "--share-with", "voice").status == 0
    shown = games("server", "provider", "show", SERVER)
    for said in ("CUSTOM_SESSION=7", "CUSTOM_PROXY", "shared with  voice"):
        assert said in shown.out
    listed = voice("server", "provider", "list").out
    assert "CUSTOM_SESSION=5" in listed
    assert SERVER[:8] not in listed
    assert games(*words, "--public").out.splitlines()[-2].split() == ["shared", "with", "everyone"]
    assert voice("server", "provider", "delete", SERVER).status == 6
    assert games("server", "provider", "delete", SERVER, "--force").status == 0
    events = games.body("event", "list", "--type", "server_provider.*")["events"]
    assert [one["type"] for one in events] == ["server_provider.ended"], json.dumps(events)
    assert games("server", "provider", "show", SERVER).status == 6


@pytest.mark.parametrize(
    "words",
    [
        ("CUSTOM_SESSION",),
        ("CUSTOM_SESSION=x",),
        (),
        ("CUSTOM_A=1", "--public", "--share-with", "x"),
    ],
)
def test_bad_words_are_a_usage_error(sim: Any, words: tuple[str, ...]) -> None:
    assert sim("server", "provider", "set", SERVER, *words).status == 2
