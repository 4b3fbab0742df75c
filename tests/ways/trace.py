"""What runs of `src/moorage` while something is done: files, functions, calls, values."""

import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from types import FrameType
from typing import Any, Self

import moorage

SOURCE = str(Path(moorage.__file__).parent) + "/"
_NOT_ENTERED = "testing/"
"""What calls the program in tests is no part of a way."""


@dataclass(frozen=True)
class Length:
    """How long a way is."""

    files: int
    functions: int
    calls: int
    """Of functions of the program."""
    switches: int
    """How often the next call is in another file."""
    value_types: int
    """Classes of the program of which a value is made."""

    @classmethod
    def columns(cls) -> list[str]:
        """The names of the numbers."""
        return [one.name.replace("_", " ") for one in fields(cls)]

    def shortest(self, other: Self) -> "Length":
        """The smaller one of each number."""
        return Length(*map(min, astuple(self), astuple(other)))

    def longer(self, most: Self) -> list[str]:
        """The numbers that are larger than in `most`."""
        each = zip(self.columns(), astuple(self), astuple(most), strict=True)
        return [f"{name}: {found}, not {bound}" for name, found, bound in each if found > bound]


@dataclass
class Trace:
    """A function for `sys.setprofile` that counts."""

    functions: dict[str, set[str]] = field(default_factory=dict)
    """File -> its functions, in the order in which they were entered."""
    types: set[str] = field(default_factory=set)
    calls: int = 0
    switches: int = 0
    _last: str = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename == "<string>" and code.co_name in {"__init__", "__create_fn__"}:
            made = type(frame.f_locals.get("self"))
            if made.__module__.startswith("moorage."):
                self.types.add(f"{made.__module__}.{made.__qualname__}")
            return
        if not code.co_filename.startswith(SOURCE):
            return
        file = code.co_filename.removeprefix(SOURCE)
        if file.startswith(_NOT_ENTERED):
            return
        self.calls += 1
        self.switches += file != self._last
        self._last = file
        self.functions.setdefault(file, set()).add(code.co_qualname)

    @property
    def length(self) -> Length:
        """What was counted."""
        functions = sum(map(len, self.functions.values()))
        return Length(len(self.functions), functions, self.calls, self.switches, len(self.types))


def traced(work: Callable[[], object]) -> Trace:
    """What runs in this thread while the work is done."""
    trace, before = Trace(), sys.getprofile()
    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(before)
    return trace
