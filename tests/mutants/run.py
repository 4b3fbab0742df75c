"""Runs the tests of a mutant's area on a scratch copy of a commit in which it is mutated."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

from tests.mutants.draw import ROOT, Home, Mutant, areas
from tests.mutants.locate import apply, found_at

Stages = Sequence[Sequence[str]]

_PYTEST: Final = ("-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=line")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
_TIMES: Final = 8
"""How many times as long as without a mutation a stage may take."""
_LEAST: Final = 300.0
"""Seconds that a stage may take in any case."""


class Verdict(StrEnum):
    """What the tests said of a mutant."""

    CAUGHT = "caught"
    TIMEOUT = "timeout"
    """The tests did not end: caught as well."""
    SURVIVED = "survived"
    NOT_THERE = "does not apply"
    """Its condition is not in the tree, or in several places: see `new_home`."""


CAUGHT: Final = frozenset({Verdict.CAUGHT, Verdict.TIMEOUT})


class BrokenTests(Exception):
    """The tests of an area fail without a mutation, or could not be run."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one mutant in one tree."""

    verdict: Verdict
    by: str = ""
    """The test that failed."""
    seconds: float = 0.0
    home: Home | None = None
    """Where it was mutated."""
    why: str = ""
    """Of a survivor: written by hand, and kept by later runs."""
    left: int = 0
    """Stages of its area that were not run on a survivor."""


@dataclass(slots=True)
class Verdicts:
    """The verdicts on one tree, in a file that is written after each mutant."""

    file: Path
    commit: str
    unmutated: dict[str, float]
    """Stage -> seconds that it takes."""
    results: dict[str, Result]

    @classmethod
    def read(cls, file: Path, commit: str) -> "Verdicts":
        """What the file says; nothing where there is none."""
        if not file.exists():
            return cls(file, commit, {}, {})
        stored = json.loads(file.read_text())
        results = {id_: _result(one) for id_, one in stored["results"].items()}
        return cls(file, stored["commit"], stored["unmutated"], results)

    def write(self) -> None:
        """Store them."""
        results = {id_: asdict(one) for id_, one in sorted(self.results.items())}
        stored = {"commit": self.commit, "unmutated": self.unmutated, "results": results}
        self.file.write_text(json.dumps(stored, indent=2) + "\n")


def _result(stored: dict[str, object]) -> Result:
    home = stored.pop("home")
    return Result(
        Verdict(str(stored["verdict"])),
        by=str(stored["by"]),
        seconds=float(str(stored["seconds"])),
        home=Home(**home) if isinstance(home, dict) else None,
        why=str(stored["why"]),
        left=int(str(stored.get("left", 0))),
    )


@contextmanager
def scratch(revision: str) -> Iterator[Path]:
    """A work tree of a commit, which goes afterwards."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder, "tree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def judge(
    tree: Path,
    mutants: Sequence[Mutant],
    verdicts: Verdicts,
    *,
    again: bool,
    most: int | None = None,
    say: Callable[[str], None],
) -> None:
    """Judge mutants that are not judged yet, or all `again`; each verdict is stored at once.

    With `most` no more than so many stages are run on each; a survivor of these is judged by all of
    them in a later run without.

    Raises:
        BrokenTests: see there.
    """
    settings = areas()["areas"]
    for mutant in mutants:
        before = verdicts.results.get(mutant.id)
        partly = before is not None and before.left > 0 and most is None
        if before is not None and not (again or partly):
            continue
        says = settings[mutant.area]
        stages = _there(tree, says.get("tests_new", [])) or says["tests"]
        found = _judged(tree, mutant, stages[:most], verdicts, say)
        if found.verdict is Verdict.SURVIVED:
            found = replace(found, left=len(stages) - len(stages[:most]))
        if before is not None and found.verdict is before.verdict:
            found = replace(found, why=found.why or before.why)
        verdicts.results[mutant.id] = found
        verdicts.write()
        left = f"so far: {found.left} stages left" if found.left else found.by
        say(f"{mutant.id:16} {found.verdict:14} {found.seconds:5.0f} s  {left}")


def _there(tree: Path, stages: Stages) -> Stages:
    """The stages, if the tree has their tests."""
    paths = [one for stage in stages for one in stage if one.startswith("tests/")]
    return stages if paths and all((tree / one).exists() for one in paths) else []


def _judged(
    tree: Path, mutant: Mutant, stages: Stages, verdicts: Verdicts, say: Callable[[str], None]
) -> Result:
    homes = found_at(tree, mutant)
    if len(homes) != 1:
        places = ", ".join(f"{one.file} {one.function}" for one in homes) or "nowhere"
        return Result(Verdict.NOT_THERE, by=f"found: {places}")
    (home,) = homes
    began = time.monotonic()
    verdict, by = Verdict.SURVIVED, ""
    for stage in stages:
        limit = max(_LEAST, _TIMES * _unmutated(tree, stage, verdicts, say))
        with _mutation(tree, home):
            verdict, by = _tested(tree, stage, limit)
        if verdict is not Verdict.SURVIVED:
            break
    return Result(verdict, by, round(time.monotonic() - began, 1), home)


@contextmanager
def _mutation(tree: Path, home: Home) -> Iterator[None]:
    """The tree with one condition mutated, for as long."""
    file = tree / home.file
    original = file.read_text()
    apply(tree, home)
    _forget_compiled(file)
    try:
        yield
    finally:
        file.write_text(original)
        _forget_compiled(file)


def _tested(tree: Path, stage: Sequence[str], limit: float) -> tuple[Verdict, str]:
    status, output = _pytest(tree, stage, limit)
    if status is None:
        return Verdict.TIMEOUT, " ".join(stage)
    if status == 0:
        return Verdict.SURVIVED, ""
    failed = _FAILED.search(output)
    return Verdict.CAUGHT, failed[1] if failed else f"pytest ended with status {status}"


def _unmutated(
    tree: Path, stage: Sequence[str], verdicts: Verdicts, say: Callable[[str], None]
) -> float:
    """Seconds that a stage takes without a mutation; it is run when first needed, and passes."""
    name = " ".join(stage)
    if name not in verdicts.unmutated:
        began = time.monotonic()
        status, output = _pytest(tree, stage, 3600)
        if status != 0:
            raise BrokenTests(f"unmutated, pytest {name} ends with {status}:\n{output[-2000:]}")
        verdicts.unmutated[name] = round(time.monotonic() - began, 1)
        verdicts.write()
        say(f"passes unmutated in {verdicts.unmutated[name]:.0f} s: {name}")
    return verdicts.unmutated[name]


def _forget_compiled(file: Path) -> None:
    """A compiled module is renewed by time and size, and these may be equal."""
    Path(cache_from_source(str(file))).unlink(missing_ok=True)


def _pytest(tree: Path, stage: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Its exit status, None past the limit; and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *_PYTEST, *stage],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return None, ""
        except BaseException:
            _end(process)
            raise
    return process.returncode, output


def _end(process: subprocess.Popen[str]) -> None:
    """End pytest, which has a process group of its own, with all that it started."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def check_import(tree: Path) -> None:
    """The tests of a tree must import the tree's sources.

    Raises:
        BrokenTests: they import others.
    """
    asked = subprocess.run(
        [sys.executable, "-c", "import moorage; print(moorage.__file__)"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        check=True,
        capture_output=True,
        text=True,
    )
    if not Path(asked.stdout.strip()).is_relative_to(tree):
        raise BrokenTests(f"the tests of {tree} would import {asked.stdout.strip()}")
