"""Asks Heat's engine, in processes of its own, and reads its answers."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.heat_judge.case import FLAVOR, GROUP, SERVER, Case, Expansion, Group, Server, as_hints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".cache/minicloud/bin/python"
ENGINE: Final = "tests.heat_judge.engine"


def ask(cases: Sequence[Case], *, processes: int = 1) -> Iterator[Mapping[str, Any]]:
    """Heat's answer to each case, in order, as the engine gives it."""
    shares = [cases[i::processes] for i in range(processes)]
    engines = [_answers(share) for share in shares if share]
    for i in range(len(cases)):
        yield next(engines[i % processes])


def _answers(cases: Sequence[Case]) -> Iterator[Mapping[str, Any]]:
    with subprocess.Popen(
        [str(PYTHON), "-m", ENGINE],
        cwd=ROOT,
        # Of several defects Heat names the first that it finds, in the order of its sets.
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        stdin = engine.stdin

        def feed() -> None:
            for case in cases:
                stdin.write(json.dumps(case.plain()) + "\n")
                stdin.flush()
            stdin.close()

        threading.Thread(target=feed, daemon=True).start()
        for _ in cases:
            yield json.loads(engine.stdout.readline())


def read_answer(answer: Mapping[str, Any]) -> Expansion:
    """The engine's answer in the form that is compared."""
    if not answer["valid"]:
        return Expansion("refused", answer["why"])
    names = {
        **{one["id"]: GROUP + one["path"] for one in answer["groups"]},
        **{one["id"]: SERVER + one["path"] for one in answer["servers"]},
    }
    servers = []
    members: dict[str, list[str]] = defaultdict(list)
    for one in answer["servers"]:
        hints = {name: _named(value, names) for name, value in one["hints"].items()}
        members[str(one["hints"].get("group"))].append(one["path"])
        flavor = None if one["flavor"] is None else str(one["flavor"])
        if flavor is not None and flavor.startswith(FLAVOR):
            flavor = FLAVOR
        servers.append(Server(one["path"], flavor, str(one["zone"] or ""), as_hints(hints)))
    groups = [
        Group(
            one["path"],
            (one["policies"] or [""])[0],
            one["max_per_host"],
            tuple(sorted(members[one["id"]])),
        )
        for one in answer["groups"]
        if one["id"] in members
    ]
    return Expansion(
        "expanded",
        reason=answer["late"] or "",
        servers=tuple(sorted(servers, key=str)),
        groups=tuple(sorted(groups, key=str)),
        others=tuple(sorted(answer["others"])),
        scaling=frozenset(answer["scaling"]),
        grouping=frozenset(one["path"] for one in answer["groups"]),
    )


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """The value with the ids in it by the paths of their resources."""
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return names.get(str(value), value)
