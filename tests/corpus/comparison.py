"""Compares exchanges with the recorded ones, as strictly as the dialect's promise is."""

import difflib
import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from tests.corpus.play import Exchange
from tests.corpus.story import HERE

RECORDED: Final = HERE / "recorded"
_LINES: Final = 40
"""Of a difference that are shown."""
_SENTENCES: Final = {"title", "detail", "text", "message", "summary", "sentence", "why"}
"""Fields of `/v1` errors that hold prose, which may get better."""


def file_of(name: str) -> Path:
    """The file with a story's recorded exchanges."""
    return RECORDED / f"{name}.json"


def recorded(name: str) -> list[Exchange]:
    """The recorded exchanges of a story; none if it was never recorded."""
    path = file_of(name)
    if not path.exists():
        return []
    found: list[Exchange] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(name: str, exchanges: list[Exchange]) -> bool:
    """Record a story's exchanges; whether anything is other than before."""
    text = json.dumps(exchanges, indent=1, ensure_ascii=False) + "\n"
    path = file_of(name)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def differences(expected: list[Exchange], found: list[Exchange]) -> Iterator[str]:
    """A text for each exchange that differs."""
    for number, (old, new) in enumerate(zip_longest(expected, found), start=1):
        if old is None or new is None:
            yield f"{number}: {(old or new)['ask']}: {'not recorded' if old is None else 'gone'}"
        elif _significant(old) != _significant(new):
            yield f"{number}: {new['ask']} (as {new['as']})\n{_shown(old, new)}"


def _significant(exchange: Exchange) -> str:
    """What must be equal, as text: 1, 1.0 and true are three things."""
    if not exchange["ask"].partition(" ")[2].startswith("/v1"):
        return json.dumps(exchange)
    return json.dumps(_without_prose(exchange), sort_keys=True)


def _without_prose(exchange: Exchange) -> Exchange:
    if exchange["status"] < 400:
        return exchange
    return {**exchange, "body": _silent(exchange.get("body"))}


def _silent(value: Any) -> Any:
    if isinstance(value, list):
        return [_silent(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "<prose>" if name in _SENTENCES and isinstance(one, str) else _silent(one)
        for name, one in value.items()
    }


def _shown(old: Exchange, new: Exchange) -> str:
    before, after = (
        json.dumps(_without_prose(one), indent=1, ensure_ascii=False).splitlines()
        for one in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, "recorded", "now", n=3, lineterm=""))
    if not lines:
        lines = ["the same fields, in another order"]
    left = [f"... and {len(lines) - _LINES} lines more"] if len(lines) > _LINES else []
    return "\n".join([*lines[:_LINES], *left])
