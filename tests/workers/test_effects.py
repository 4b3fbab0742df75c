"""The loops over a real ledger: in order, no lane waits for another, in several replicas."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutEffect
from moorage.domain.effects import Effect, EffectKind, EffectState, Lane
from moorage.domain.period import SECOND
from moorage.outward.program import HookProgram
from moorage.service_environment import with_strategies
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import SeededIds
from moorage.usecases.effect_dispatch import Message, OutwardActions, carry_out, postpone
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits
from moorage.workers import effects
from moorage.workers.loop import start_scan

DEADLINE = 100.0


class NoSolver:
    """Effects solve nothing."""

    def solve(self, *args: Any, **options: Any) -> Any:
        raise AssertionError


@dataclass
class Work:
    """The use cases, bound to a store and to somebody outside."""

    store: Ledger
    outside: OutwardActions

    @property
    def env(self) -> UseCaseEnvironment:
        return with_strategies(
            Environment(self.store, NoSolver(), SeededIds(), Limits(), time.monotonic, time.sleep)
        )

    def carry_out(self, effect: Effect) -> object:
        return carry_out(self.env, self.outside, effect)

    def postpone(self, effect: Effect, problem: str) -> None:
        postpone(self.env, self.outside, effect, problem)


def written(store: Ledger, name: str, kind: EffectKind, due: int = 1) -> None:
    effect = Effect(name, kind, f"of {name}", "p", due, due)
    store.commit(Changeset((PutEffect(effect, None),)))


def state(store: Ledger, name: str) -> EffectState:
    return store.effects(f"of {name}")[0].state


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_store(new_database(tmp_path))
    yield ledger
    ledger.close()


def test_one_that_never_answers_keeps_no_other_lane_waiting(store: Ledger) -> None:
    asked, answer = Event(), Event()

    def silent(_: Message) -> str:
        asked.set()
        assert answer.wait(DEADLINE)
        return "at last"

    written(store, "told", EffectKind.NOTIFY)
    running = effects.start(store, Work(store, OutwardActions(tell=silent)), interval=0.02)
    assert asked.wait(DEADLINE)
    written(store, "lived", EffectKind.CLOSE)
    written(store, "hooked", EffectKind.HOOK)
    wait_for(lambda: {state(store, "lived"), state(store, "hooked")} == {EffectState.DONE})
    assert state(store, "told") is EffectState.PENDING
    answer.set()
    wait_for(lambda: state(store, "told") is EffectState.DONE)
    running.close()


def test_in_a_lane_the_longest_due_is_first_also_of_what_comes_meanwhile(store: Ledger) -> None:
    heard: list[str] = []

    def tell(message: Message) -> str:
        heard.append(message.id)
        if message.id == "a":
            written(store, "b", EffectKind.NOTIFY, due=2)
        return "heard"

    written(store, "c", EffectKind.NOTIFY, due=3)
    written(store, "a", EffectKind.NOTIFY, due=1)
    work = Work(store, OutwardActions(tell=tell))
    found = effects.once(store, work, Lane.TELL, stop=Event())
    assert (heard, found) == (["a", "b", "c"], effects.Round(3, 0))


def test_one_that_breaks_is_put_off_and_does_not_stop_the_rest(
    store: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Work):
        def carry_out(self, effect: Effect) -> object:
            if effect.id == "bad":
                raise ZeroDivisionError("broken")
            return super().carry_out(effect)

    written(store, "bad", EffectKind.NOTIFY, due=1)
    written(store, "good", EffectKind.NOTIFY, due=2)
    work = Broken(store, OutwardActions())
    with caplog.at_level(logging.ERROR):
        found = effects.once(store, work, Lane.TELL, stop=Event())
    assert found == effects.Round(2, 1)
    assert "could not carry out notify bad" in caplog.text
    assert state(store, "good") is EffectState.DONE
    (bad,) = store.effects("of bad")
    assert (bad.state, bad.outcome) == (EffectState.PENDING, "broken")
    assert bad.not_before > store.now()


def test_a_database_out_of_reach_ends_no_loop(
    store: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = Event()
    due_effects = store.due_effects

    def failing(limit: int, lane: Lane | None = None) -> Any:
        if not away.is_set():
            away.set()
            raise OSError("the database is away")
        return due_effects(limit, lane)

    monkeypatch.setattr(store, "due_effects", failing)
    good: list[Lane] = []
    running = effects.start(store, Work(store, OutwardActions()), interval=0.01, done=good.append)
    written(store, "e", EffectKind.NOTIFY)
    wait_for(lambda: state(store, "e") is EffectState.DONE)
    wait_for(lambda: set(good) == set(Lane))
    running.close()
    assert "a round of effects, " in caplog.text


def test_the_lookout_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[int] = []
    enough = Event()

    def look() -> bool:
        looks.append(1)
        if len(looks) == 1:
            raise OSError("away")
        if len(looks) > 3:
            enough.set()
        return len(looks) < 3

    running = start_scan(look, interval=0.01)
    assert enough.wait(DEADLINE)
    running.close()
    assert "a round of scan failed" in caplog.text


def test_of_several_replicas_one_tells(database_url: str) -> None:
    heard: list[str] = []
    counting, stop = Lock(), Event()

    def tell(message: Message) -> str:
        with counting:
            heard.append(message.id)
        return "heard"

    with ExitStack() as closing:
        stores = [open_store(database_url) for _ in range(3)]
        for each in stores:
            closing.callback(each.close)
        names = [f"e{number}" for number in range(40)]
        for name in names:
            written(stores[0], name, EffectKind.NOTIFY)
        threads = [
            Thread(
                target=effects.run,
                args=(each, Work(each, OutwardActions(tell=tell)), Lane.TELL),
                kwargs={"stop": stop, "interval": 0.01},
            )
            for each in stores
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: all(state(stores[0], name) is EffectState.DONE for name in names))
        stop.set()
        for thread in threads:
            thread.join(DEADLINE)
    assert sorted(heard) == sorted(names)


def _lines(path: Path, least: int) -> bool:
    return path.exists() and len(path.read_text().split()) >= least


def _work_until_killed(url: str, hook: str) -> None:
    store = open_store(url)
    outside = OutwardActions(hook=HookProgram(hook, 30.0), timeout=2 * SECOND)
    effects.run(store, Work(store, outside), Lane.HOOK, stop=Event(), interval=0.01)


@pytest.mark.parametrize("kills", [1, 3])
def test_a_worker_killed_between_taking_and_recording_loses_nothing(
    tmp_path: Path, kills: int
) -> None:
    url, heard = new_database(tmp_path), tmp_path / "heard"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\necho "$MOORAGE_EFFECT_ID" >> {heard}\nexec sleep 1\n')
    hook.chmod(0o755)
    store = open_store(url)
    written(store, "e", EffectKind.HOOK)
    context = multiprocessing.get_context("spawn")
    for number in range(1, kills + 1):
        process = context.Process(target=_work_until_killed, args=(url, str(hook)))
        process.start()
        wait_for(partial(_lines, heard, number))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(DEADLINE)
        assert state(store, "e") is EffectState.PENDING
        assert store.effects("of e")[0].attempts == number
    outside = OutwardActions(hook=HookProgram(str(hook), 30.0), timeout=2 * SECOND)
    stop = Event()
    last = Thread(
        target=partial(effects.run, store, Work(store, outside), Lane.HOOK),
        kwargs={"stop": stop, "interval": 0.01},
    )
    last.start()
    wait_for(lambda: state(store, "e") is EffectState.DONE)
    stop.set()
    last.join(DEADLINE)
    assert heard.read_text().split() == ["e"] * (kills + 1)
    store.close()
