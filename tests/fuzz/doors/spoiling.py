"""Values spoiled at random: of a wrong type, too large, too deep, not text, not a number."""

import json
from random import Random
from typing import Any, Final

RAW: Final = "\uf8ff"
"""Marks a string whose content is written into the JSON as it is."""

DEEPER: Final = 0.8
"""How likely what is spoiled lies within an object or a list, and is not the whole of it."""

LARGEST: Final = 8 * 1024 * 1024
"""Characters of what a list grows to. Spoiled again and again it would take gigabytes, and all
threads that measure answers would wait while this one writes them."""

_RAW_TEXTS: Final = (
    "NaN",
    "-Infinity",
    "1e400",
    "-0",
    "1" * 5_000,
    "0x10",
    "[" * 2_000 + "]" * 2_000,
    '{"a":' * 500 + "1" + "}" * 500,
    '{"a": 1, "a": 2}',
    '"\\ud800"',
    '"\\u0000"',
    "{",
)
_TEXTS: Final = (
    "",
    " ",
    "x" * 300,
    "x" * 100_000,
    "a\x00b",
    "../../etc/passwd",
    "'; DROP TABLE providers; --",
    "\u202eabc",
    "é" * 256,
    "%00",
    "now",
    "P" + "9" * 60 + "D",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "true",
    "null",
    "VCPU",
    "COMPUTE",
    "admin",
)
_NUMBERS: Final = (0, -1, 1, 2**31, 2**63, 2**64, 10**30, 0.5, 1e308, True)


def dumps(value: object) -> bytes:
    """The value as JSON; marked strings become what they hold, JSON or not."""
    text = json.dumps(value, ensure_ascii=False)
    for raw in _RAW_TEXTS:
        text = text.replace(json.dumps(RAW + raw, ensure_ascii=False), raw)
    return text.encode("utf-8", "surrogatepass")


def spoiled(value: Any, dice: Random) -> Any:
    """A copy of a JSON value that differs from it in one place, seldom in several."""
    once = _spoiled_once(value, dice)
    return spoiled(once, dice) if dice.random() < 0.3 else once


def _spoiled_once(value: Any, dice: Random) -> Any:
    if isinstance(value, dict) and value and dice.random() < DEEPER:
        return _spoiled_object(value, dice)
    if isinstance(value, list) and value and dice.random() < DEEPER:
        return _spoiled_list(value, dice)
    return _anything(dice)


def _spoiled_object(value: dict[str, Any], dice: Random) -> dict[str, Any]:
    key = dice.choice(list(value))
    match dice.randrange(8):
        case 0:
            return {k: v for k, v in value.items() if k != key}
        case 1:
            return {**value, dice.choice(_TEXTS)[:200]: _anything(dice)}
        case _:
            return {**value, key: _spoiled_once(value[key], dice)}


def _spoiled_list(value: list[Any], dice: Random) -> list[Any]:
    at = dice.randrange(len(value))
    match dice.randrange(8):
        case 0:
            return value[:at] + value[at + 1 :]
        case 1:
            times = dice.choice((2, 50, 1_000))
            return value * min(times, max(LARGEST // len(json.dumps(value)), 1))
        case _:
            return [*value[:at], _spoiled_once(value[at], dice), *value[at + 1 :]]


def _anything(dice: Random) -> Any:
    match dice.randrange(7):
        case 0:
            return RAW + dice.choice(_RAW_TEXTS)
        case 1:
            return dice.choice(_NUMBERS)
        case 2:
            return None
        case 3:
            return [dice.choice(_TEXTS)] * dice.choice((0, 1, 30))
        case 4:
            return {dice.choice(_TEXTS): dice.choice(_NUMBERS)}
        case _:
            return dice.choice(_TEXTS)


def text(dice: Random) -> str:
    """A text for a place where one is expected."""
    return dice.choice(_TEXTS)
