"""The draw: which conditions are mutated, and how; by a seed, over the sources in `areas.toml`.

A mutant's id is its area and its number in the seeded order of that area. Those in
`equivalent.toml`, whose mutation changes nothing that anybody could observe, are passed over, and
the next of the order takes their place.
"""

import json
import random
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.mutants.conditions import Condition, conditions

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
DRAWN: Final = HERE / "drawn.json"
SOURCES: Final = "src/moorage"
_SHARP: Final = 4
"""How many times as likely a condition is drawn whose mutation changes it a little."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a condition is in some tree, and what replaces it there."""

    file: str
    function: str
    text: str
    ordinal: int
    mutation: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One condition that is mutated."""

    id: str
    area: str
    home: Home
    """At the base commit."""
    new_home: Home | None = None
    """After a move; None: as before."""
    note: str = ""


def areas() -> dict[str, Any]:
    """What `areas.toml` says."""
    return tomllib.loads((HERE / "areas.toml").read_text())


def equivalent() -> Mapping[str, str]:
    """Mutants that nobody could tell from the original -> why."""
    found: dict[str, str] = tomllib.loads((HERE / "equivalent.toml").read_text())
    return found


def show(revision: str, file: str) -> str:
    """A file of a commit."""
    git = ["git", "-C", str(ROOT), "show", f"{revision}:{file}"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout


def draw() -> list[Mutant]:
    """The drawn mutants of every area, in their order; those stored keep their new homes."""
    settings, passed_over, stored = areas(), equivalent(), {one.id: one for one in read()}
    found: list[Mutant] = []
    for area, says in settings["areas"].items():
        order = _order(settings["base"], settings["seed"], area, says["sources"])
        fitting = [one for one in order if one.id not in passed_over][: settings["per_area"]]
        found += (_kept(one, stored.get(one.id)) for one in fitting)
    return found


def _kept(fresh: Mutant, stored: Mutant | None) -> Mutant:
    return stored if stored is not None and stored.home == fresh.home else fresh


def _order(revision: str, seed: int, area: str, sources: Sequence[str]) -> list[Mutant]:
    """All conditions of an area in the order of the draw, each with one mutation."""
    chance = random.Random(f"{seed} {area}")
    drawn = [
        (chance.random() ** (1 / (_SHARP if one.sharp else 1)), file, one)
        for file, one in _candidates(revision, sources)
    ]
    drawn.sort(key=lambda one: one[0], reverse=True)
    return [
        Mutant(
            f"{area}-{number:02}",
            area,
            Home(file, one.function, one.text, one.ordinal, chance.choice(one.mutations)),
        )
        for number, (_, file, one) in enumerate(drawn, 1)
    ]


def _candidates(revision: str, sources: Sequence[str]) -> Iterator[tuple[str, Condition]]:
    for source in sources:
        name, _, only = source.partition("::")
        file = f"{SOURCES}/{name}"
        wanted = set(filter(None, only.split(",")))
        for one in conditions(show(revision, file)):
            within = {part for part in _prefixes(one.function) if part in wanted}
            if within or not wanted:
                yield file, one


def _prefixes(function: str) -> Iterator[str]:
    """A function and those that it is inside of."""
    parts = function.split(".")
    return (".".join(parts[: size + 1]) for size in range(len(parts)))


def read() -> list[Mutant]:
    """The stored draw."""
    if not DRAWN.exists():
        return []
    return [
        Mutant(
            one["id"],
            one["area"],
            Home(**one["home"]),
            None if one["new_home"] is None else Home(**one["new_home"]),
            one["note"],
        )
        for one in json.loads(DRAWN.read_text())
    ]


def write(mutants: Sequence[Mutant]) -> None:
    """Store the draw."""
    DRAWN.write_text(json.dumps([asdict(one) for one in mutants], indent=2) + "\n")
