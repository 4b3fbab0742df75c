"""`moorage server provider`."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

SERVER = "5c0f0000-0000-4000-8000-0000000000c1"


@pytest.fixture
def server() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def games(sim: Any, server: str) -> Any:
    """The command line of a project that has a server."""
    cli = sim.as_tenant(f"games-{server[:8]}")
    made = cli("ensemble", "create", "--server", "m1.small", "--name", "lobby", "-f", "json")
    assert made.status == 0, made
    claim = cli("claim", "create", "lobby", "server[0]", "--flavor", "m1.small", "-f", "json")
    active = cli("claim", "set", claim.body["claim"]["id"], "--active", "--server", server)
    assert active.status == 0, active
    return cli


def test_it_is_set_shown_shared_and_deleted(sim: Any, server: str, games: Any) -> None:
    words = ("server", "provider", "set", server, "CUSTOM_SESSION=7", "--trait", "CUSTOM_PROXY")
    dry = games(*words, "--dry-run", "-f", "json")
    assert (dry.status, dry.body["dry_run"]) == (0, True)
    voice = sim.as_tenant("voice")
    assert voice.body("server", "provider", "list")["server_providers"] == []
    assert games(*words, "--share-with", "voice").status == 0
    shown = games("server", "provider", "show", server)
    for said in ("CUSTOM_SESSION=7", "CUSTOM_PROXY", "shared with  voice"):
        assert said in shown.out
    listed = voice("server", "provider", "list").out
    assert "CUSTOM_SESSION=5" in listed
    assert server[:8] not in listed
    assert games(*words, "--public").out.splitlines()[-2].split() == ["shared", "with", "everyone"]
    assert voice("server", "provider", "delete", server).status == 6
    assert games("server", "provider", "delete", server, "--force").status == 0
    events = games.body("event", "list", "--type", "server_provider.*")["events"]
    assert [one["type"] for one in events] == ["server_provider.ended"], json.dumps(events)
    assert games("server", "provider", "show", server).status == 6


def test_it_is_found_by_the_beginning_of_an_id_of_the_list(
    sim: Any, server: str, games: Any
) -> None:
    words = ("server", "provider")
    assert games(*words, "set", server[:8], "CUSTOM_SESSION=7").status == 6
    assert games(*words, "set", server, "CUSTOM_SESSION=7", "--share-with", "talk").status == 0
    (one,) = games.body(*words, "list")["server_providers"]
    for text in (server[:13], one["id"][:13], one["id"], server):
        assert games.body(*words, "show", text)["server_provider"]["server_id"] == server
        assert games.body(*words, "slice", "list", text)["slices"] == []
        assert sim(*words, "show", text).status == 0, "operators find those of other projects"
    assert games(*words, "set", server[:13], "CUSTOM_SESSION=8").status == 0
    for text in (server[:13], one["id"][:13], one["id"]):
        assert sim.as_tenant("talk")(*words, "show", text).status == 6
    gone = games(*words, "delete", one["id"][:13])
    assert (gone.status, gone.out) == (0, f"server {server[:8]}  offers nothing any more\n")


SESSIONS = """\
name: sessions
members:
  - {{name: s, kind: slice, count: 2, resources: {{CUSTOM_SESSION: 1}}, servers_of: [{owner}]}}
"""


def test_its_owner_lists_slices_and_reports_on_them(
    sim: Any, server: str, games: Any, tmp_path: Path
) -> None:
    words = ("server", "provider", "set", server, "CUSTOM_SESSION=7", "--share-with", "chat")
    assert games(*words).status == 0
    voice = sim.as_tenant("chat")
    text = SESSIONS.format(owner=f"games-{server[:8]}")
    (tmp_path / "sessions.yaml").write_text(text, encoding="utf-8")
    held = voice("ensemble", "create", "-f", str(tmp_path / "sessions.yaml"), "--hold", "1h")
    assert held.status == 0, held
    first, second = (
        voice.body("claim", "create", "sessions", f"s[{number}]")["claim"]["id"]
        for number in (0, 1)
    )
    slices = ("server", "provider", "slice")
    listed = games(*slices, "list", server).out
    assert all(part in listed for part in (first[:8], "building", "CUSTOM_SESSION=1", "chat"))
    port = str(uuid.uuid4())
    told = games(*slices, "set", server, first[:8], "--active", "--slice", port)
    assert (told.status, port in told.out) == (0, True), told
    assert games(*slices, "set", server, first, "--ended").status == 0
    failed = games(*slices, "set", server, second[:8], "--failed", "--reason", "no proxy")
    assert failed.status == 0, failed
    assert "no proxy" in voice("claim", "show", second).out
    assert games.body(*slices, "list", server)["slices"] == []
    assert games(*slices, "set", server, "beef", "--failed").status == 6
    assert voice(*slices, "list", server).status == 6
    assert games("server", "provider", "delete", server, "--force").status == 0


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
