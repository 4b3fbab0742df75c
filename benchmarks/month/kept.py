"""What is kept of a way while it runs, so that it can go on from the last whole day.

A folder per way: the ledger as it was at the end of a day, and beside it the world's own memory.
What came of a way that has run to its end is kept instead of both.
"""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.month.world import World, fleet

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.month.plan import Month
    from benchmarks.month.ways import Way

_REMEMBERED: Final = (
    "found", "servers", "waiting", "since", "levels", "now", "numbers", "queue", "readings",
)  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """One way's folder."""

    folder: Path

    @property
    def database(self) -> str:
        """The URL of the ledger that the world lives with."""
        return f"sqlite:///{self.folder / 'ledger.db'}"

    def finished(self) -> dict[str, Any] | None:
        """What came of it, if it has run to its end."""
        file = self.folder / "found.json"
        return json.loads(file.read_text()) if file.exists() else None

    def finish(self, found: dict[str, Any]) -> None:
        """Keep what came of it; the rest is not needed any more."""
        self._write("found.json", json.dumps(found).encode())
        for file in [*self.folder.glob("*.db*"), *self.folder.glob("day-*")]:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()

    def world(self, month: Month, way: Way) -> tuple[World, float]:
        """The world at the end of the last day that was kept, or at its beginning.

        Returns:
            It, and the processor time in seconds that it has taken so far.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.glob("ledger.db*"):
            file.unlink()
        days = sorted(self.folder.glob("day-*"))
        if not days:
            world = World(month, way, self.database, fleet(month, way))
            world.start()
            return world, 0.0
        shutil.copyfile(days[-1] / "ledger.db", self.folder / "ledger.db")
        world = World(month, way, self.database, "")
        memory = pickle.loads((days[-1] / "memory").read_bytes())  # noqa: S301 - written below
        for name in _REMEMBERED:
            setattr(world, name, memory[name])
        world.service.clock.set(world.now)
        world.service.ids.random.setstate(memory["dice"])
        return world, memory["cpu_s"]

    def day(self, world: World, cpu_s: float) -> None:
        """Keep the world as it is at the end of a day, instead of the day before."""
        before = sorted(self.folder.glob("day-*"))
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        source = f"file:{self.folder / 'ledger.db'}?mode=ro"
        with (
            closing(sqlite3.connect(source, uri=True)) as ledger,
            closing(sqlite3.connect(new / "ledger.db")) as copy,
        ):
            ledger.backup(copy)
        memory = {name: getattr(world, name) for name in _REMEMBERED}
        memory |= {"dice": world.service.ids.random.getstate(), "cpu_s": cpu_s}
        (new / "memory").write_bytes(pickle.dumps(memory))
        new.rename(self.folder / f"day-{world.day:03}")
        for old in before:
            shutil.rmtree(old)

    def _write(self, name: str, content: bytes) -> None:
        new = self.folder / f"{name}.new"
        new.write_bytes(content)
        new.rename(self.folder / name)
