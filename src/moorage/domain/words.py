"""Message texts: counts with their nouns, and suggestions for mistyped words."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def counted(count: int, noun: str, many: str = "") -> str:
    """`1 rack`, `3 racks`."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"


def did_you_mean(said: str, known: Iterable[str]) -> str:
    """`; did you mean count?`, or nothing where no known word is similar."""
    near = difflib.get_close_matches(said, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def first_of(texts: Sequence[object], most: int) -> list[str]:
    """The first of some texts, to be joined, and then `and 3 more` where there are others."""
    others = len(texts) - most
    return [*map(str, texts[:most]), *([f"and {others} more"] if others > 0 else [])]


_SPANS: Final = 8
"""Runs of names that a message lists."""


def spans(name: str, numbers: Iterable[int]) -> str:
    """`db[0] to db[2], db[5]`, in order; `...` for runs beyond the eighth."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    listed = [" to ".join(f"{name}[{one}]" for one in run) for run in runs[:_SPANS]]
    return ", ".join([*listed, "..."] if len(runs) > _SPANS else listed)


_SHOWN: Final = 100
"""Characters of a value that a message quotes."""


def shown(value: object) -> str:
    """A client's value for a message: shortened where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts h9 before h10."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(text)
    )


_NUMBER: Final = re.compile(r"(\d+)")
