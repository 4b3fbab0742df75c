"""Whether both sides say the same, and how they differ."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tests.heat_judge import heat_side, moorage_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tests.heat_judge.case import Case, Expansion

Verdict = Literal["same", "differs", "refused", "late", "broken", "invalid"]
"""`late`: not the same, but Heat would refuse it, too, when it creates a nested stack."""
SHOWN: Final = 6
"""Differences of a case that are told."""


@dataclass(frozen=True)
class Compared:
    """A case with what both sides said."""

    case: Case
    heat: Expansion
    moorage: Expansion
    verdict: Verdict
    differences: tuple[str, ...] = ()

    @property
    def has_servers(self) -> bool:
        """Whether Heat accepts it, and there is something to place."""
        return bool(self.heat.servers)


def compare_all(cases: Sequence[Case], answers: Iterable[Mapping[str, Any]]) -> Iterator[Compared]:
    """Every case compared with Heat's answer to it."""
    for case, answer in zip(cases, answers, strict=True):
        yield compare(case, heat_side.read_answer(answer))


def compare(case: Case, heat: Expansion) -> Compared:
    """The case compared with what Heat made of it."""
    with tempfile.TemporaryDirectory() as scratch:
        ours = moorage_side.expand(case, heat, Path(scratch))
    if ours.outcome == "broken":
        return Compared(case, heat, ours, "broken", (ours.reason,))
    if heat.outcome == "refused":
        return Compared(case, heat, ours, "invalid")
    if ours.outcome == "refused":
        return Compared(case, heat, ours, "late" if heat.reason else "refused", (ours.reason,))
    found = tuple(differences(heat, ours))
    different: Verdict = "late" if heat.reason else "differs"
    return Compared(case, heat, ours, different if found else "same", found)


def differences(heat: Expansion, ours: Expansion) -> Iterator[str]:
    """What one side has and the other has not."""
    yield from _unequal("server", heat.servers, ours.servers)
    yield from _unequal("group", heat.groups, ours.groups)
    if heat.servers:
        yield from _unequal("not placed", heat.others, ours.others)


def _unequal(word: str, heat: Iterable[object], ours: Iterable[object]) -> Iterator[str]:
    theirs, mine = Counter(heat), Counter(ours)
    for title, left in (("Heat alone", theirs - mine), ("Moorage alone", mine - theirs)):
        for i, (one, count) in enumerate(left.items()):
            if i == SHOWN:
                yield f"{title}: {len(left)} of {word} in all"
                break
            yield f"{title}: {word} {one}" + (f" x {count}" if count > 1 else "")
