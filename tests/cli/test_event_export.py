"""`moorage event export`: who did what to what, resumed by cursor, and what is kept no more."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.event_export import EventExport
from moorage.domain.changes import Changeset, PutEvent, TrimEvents
from moorage.domain.events import DerivedEvent
from moorage.domain.period import HOUR
from moorage.store import open_store
from moorage.testing import in_process
from moorage.testing.service import NINE, HandClock


def told(*names: str) -> Changeset:
    return Changeset(tuple(PutEvent(DerivedEvent("lease.active", "p", one, 0)) for one in names))


def subjects(export: EventExport) -> list[str]:
    return [json.loads(one)["subject"] for one in export.lines()]


def test_an_export_says_what_is_kept_no_more_and_goes_on_behind_a_line(tmp_path: Path) -> None:
    database, clock = f"sqlite:///{tmp_path / 'ledger.db'}", HandClock()
    store = open_store(database, clock=clock)
    store.commit(told("a"))
    clock.pass_by(HOUR)
    store.commit(told("b", "c"))
    clock.pass_by(HOUR)
    store.commit(told("d"))
    with in_process.app(database, clock=clock) as app, in_process.client(app) as client:
        whole = EventExport(client.events, all_projects=True)
        lines = [json.loads(one) for one in whole.lines()]
        assert [one["subject"] for one in lines] == ["a", "b", "c", "d"]
        assert (lines[0]["subject_kind"], lines[0]["ensemble"]) == ("lease", None)
        assert (whole.written, whole.incomplete) == (4, False)
        middle = EventExport(
            client.events, since=NINE + HOUR, until=NINE + 2 * HOUR, all_projects=True
        )
        assert subjects(middle) == ["b", "c"]
        for at, more in ((lines[1]["cursor"], ["c", "d"]), (whole.cursor, [])):
            again = EventExport(client.events, after=at, all_projects=True)
            assert subjects(again) == more
            assert again.cursor == whole.cursor
        store.commit(Changeset((TrimEvents(NINE + HOUR, 100, 100),)))
        for since, incomplete in ((NINE, True), (NINE + HOUR, False), (None, False)):
            export = EventExport(client.events, since=since, all_projects=True)
            assert subjects(export) == ["b", "c", "d"]
            assert (export.lost is not None, export.incomplete) == (True, incomplete)
    with in_process.app(database, clock=clock) as app:
        other = in_process.client(app, in_process.tenant("q"))
        with other as client:
            assert subjects(EventExport(client.events)) == []
    store.close()


@pytest.mark.process
def test_the_command_appends_where_it_left_off(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    words = ("event", "export", "-o", str(file), "--type", "ensemble.*")
    sim("ensemble", "create", "--name", "exported-one", "--server", "m1.small")
    first = sim.body(*words)
    sim("ensemble", "create", "--name", "exported-two", "--server", "m1.small")
    more = sim(*words, "--after", first["cursor"])
    assert (more.status, more.out.startswith("1 event  cursor ")) == (0, True), more
    lines = [json.loads(one) for one in file.read_text("utf-8").splitlines()]
    assert [one["body"]["name"] for one in lines[-2:]] == ["exported-one", "exported-two"]
    assert {one["user"] for one in lines} == {"admin"}
    assert all(one["ensemble"] == one["subject"] for one in lines)
    for name in ("exported-one", "exported-two"):
        sim("ensemble", "delete", name, "--yes")


def test_a_time_that_ends_before_it_begins_is_refused(sim: Any, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    file.write_text("kept\n", encoding="utf-8")
    for until in ("2026-11-30", "2026-12-01"):
        told = sim("event", "export", "--since", "2026-12-01", "--until", until, "-o", str(file))
        assert (told.status, "--until must be later than --since" in told.err) == (2, True), told
    assert file.read_text("utf-8") == "kept\n"
