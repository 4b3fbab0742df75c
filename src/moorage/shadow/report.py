"""What a shadow has found, bounded, as a JSON file that one process writes and anybody reads."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.domain.errors import InvalidDescription, MoorageError, NotFound
from moorage.domain.period import SECOND, format_instant

if TYPE_CHECKING:
    from pathlib import Path

KINDS: Final = 200
"""Kinds of differences that are told apart; the rest are one."""
EXAMPLES: Final = 3
"""Kept of each kind: the first ones."""
_OTHER: Final = "other"


class Example(msgspec.Struct):
    """A request whose answers differ."""

    at: str
    method: str
    path: str
    """With its query."""
    version: str
    detail: str


class Kind(msgspec.Struct):
    """Differences of one kind."""

    count: int = 0
    examples: list[Example] = []


class Boots(msgspec.Struct):
    """Servers that got their first allocations, by a request whose candidates were seen."""

    seen: int = 0
    possible_here: int = 0
    """On hosts that Moorage had offered too."""
    first_here: int = 0
    """On the host that Moorage had offered first."""
    elsewhere: Kind = msgspec.field(default_factory=Kind)
    """On hosts that Moorage had not offered."""


class JointCase(msgspec.Struct):
    """Several servers as Nova placed them, beside a joint decision of all of them."""

    at: str
    of: str
    """Their request or their server group."""
    servers: int
    there: dict[str, int]
    """Host -> how many of them."""
    here: dict[str, int] = {}
    """The same by the joint decision; empty: there is none."""
    broken: list[str] = []
    """Policies of the group that do not hold for them there."""
    reason: str = ""
    """Why there is no joint decision."""


class JointKind(msgspec.Struct):
    """Cases of one kind."""

    count: int = 0
    examples: list[JointCase] = []

    def note(self, case: JointCase) -> None:
        """Count one more, and keep it while there are few."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(case)


class Joint(msgspec.Struct):
    """Servers of one request or one server group, which are decided jointly here."""

    judged: int = 0
    same: int = 0
    """On the hosts that the joint decision gives."""
    elsewhere: JointKind = msgspec.field(default_factory=JointKind)
    """On other hosts."""
    broken: JointKind = msgspec.field(default_factory=JointKind)
    """There the group's policy does not hold."""
    impossible: JointKind = msgspec.field(default_factory=JointKind)
    """There is no joint decision that keeps the policy."""

    def add(self, case: JointCase) -> None:
        """Count a case."""
        self.judged += 1
        if case.broken:
            self.broken.note(case)
        if case.reason:
            self.impossible.note(case)
        elif case.here == case.there:
            self.same += 1
        else:
            self.elsewhere.note(case)


class ShadowReport(msgspec.Struct):
    """The report."""

    followed: str
    since: str
    until: str = ""
    requests: int = 0
    """Forwarded to the followed service."""
    equal: int = 0
    different: dict[str, Kind] = {}
    not_compared: dict[str, int] = {}
    """Reason -> number of requests."""
    boots: Boots = msgspec.field(default_factory=Boots)
    joint: Joint = msgspec.field(default_factory=Joint)
    refreshes: int = 0
    """How often the content was taken over."""
    corrections: int = 0
    """Records that this changed after the first time: writes by other ways, or that went wrong."""

    @property
    def differences(self) -> int:
        """The number of requests that were answered differently."""
        return sum(kind.count for kind in self.different.values())

    def leave(self, reason: str) -> None:
        """Count a request that is not compared."""
        self.not_compared[reason] = self.not_compared.get(reason, 0) + 1

    def differ(self, name: str, example: Example) -> None:
        """Count a difference."""
        if name not in self.different and len(self.different) >= KINDS:
            name = _OTHER
        note(self.different.setdefault(name, Kind()), example)


def timestamp() -> str:
    """The machine's time, as text."""
    return format_instant(int(time.time()) * SECOND)


def note(kind: Kind, example: Example) -> None:
    """Count one more, and keep it while there are few."""
    kind.count += 1
    if len(kind.examples) < EXAMPLES:
        kind.examples.append(example)


@dataclass(frozen=True, slots=True)
class ReportFile:
    """Where the report is."""

    path: Path

    def load(self) -> ShadowReport:
        """The report.

        Raises:
            NotFound: there is none.
            InvalidDescription: the file is something else.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=ShadowReport)
        except FileNotFoundError as error:
            raise NotFound("shadow report", str(self.path)) from error
        except (OSError, msgspec.DecodeError) as error:
            raise InvalidDescription(f"cannot read {self.path}: {error}", path="shadow") from error

    def resumed(self, followed: str) -> ShadowReport:
        """The report to go on with: a new one if there is none of this service."""
        try:
            found = self.load()
        except MoorageError:
            found = None
        if found is None or found.followed != followed:
            return ShadowReport(followed, timestamp())
        return found

    def save(self, report: ShadowReport) -> None:
        """Replace the file whole; only its owner may read it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(report), indent=1))
        beside.replace(self.path)
