"""Draw, run, locate and compare mutants: `python -m tests.mutants --help`."""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.mutants.draw import HERE, ROOT, Mutant, areas, draw, read, write
from tests.mutants.locate import found_at
from tests.mutants.run import CAUGHT, BrokenTests, Result, Verdicts, check_import, judge, scratch

FILES: Final = {"old": HERE / "verdicts-before.json", "new": HERE / "verdicts-after.json"}


def main(words: Sequence[str]) -> int:
    """Do what is asked; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("draw", help="write drawn.json anew from areas.toml and equivalent.toml")
    locate = verbs.add_parser("locate", help="say where each condition is in this tree")
    locate.add_argument("--write", action="store_true", help="write certain moves as new_home")
    verbs.add_parser("table", help="both verdicts side by side; status 1 if one got worse")
    run = verbs.add_parser("run", help="judge what is not judged yet")
    run.add_argument("--homes", choices=tuple(FILES), default="new", help="which verdicts to write")
    run.add_argument("--commit", help="the tree; by default the base for old, HEAD for new homes")
    run.add_argument("--only", action="append", metavar="ID", help="judge these, also again")
    run.add_argument("--stages", type=int, help="run so many stages of tests at most: a first look")
    run.add_argument("--area", help="judge one area only")
    run.add_argument("--verdicts", type=Path, help="another file of verdicts")
    asked = parser.parse_args(words)
    if asked.verb == "draw":
        write(draw())
        return 0
    if asked.verb == "locate":
        return _locate(keep=asked.write)
    if asked.verb == "table":
        return _table()
    return _run(asked)


def _run(asked: argparse.Namespace) -> int:
    chosen = [
        one
        for one in read()
        if asked.area in {None, one.area} and (asked.only is None or one.id in asked.only)
    ]
    if not chosen:
        say("no such mutant: see tests/mutants/drawn.json")
        return 2
    revision = asked.commit or (areas()["base"] if asked.homes == "old" else "HEAD")
    verdicts = Verdicts.read(asked.verdicts or FILES[asked.homes], revision)
    if asked.homes == "old":
        chosen = [replace(one, new_home=None) for one in chosen]
    try:
        with scratch(revision) as tree:
            check_import(tree)
            again = asked.only is not None
            judge(tree, chosen, verdicts, again=again, most=asked.stages, say=say)
    except BrokenTests as error:
        say(str(error))
        return 2
    return 0


def _locate(*, keep: bool) -> int:
    """The status is 1 while some condition is nowhere, or may be in several places."""
    found: list[Mutant] = []
    open_ = 0
    for one in read():
        homes = found_at(ROOT, one)
        certain = homes[0] if len(homes) == 1 else None
        open_ += certain is None
        if certain is None:
            places = "; ".join(f"{home.file} {home.function}" for home in homes) or "nowhere"
            say(f"{one.id:16} {one.home.file} {one.home.function}: {one.home.text}\n    ? {places}")
        elif certain != (one.new_home or one.home):
            say(f"{one.id:16} {one.home.file} -> {certain.file} {certain.function}")
        moved = keep and certain is not None and certain != one.home
        found.append(replace(one, new_home=certain) if moved else one)
    if keep:
        write(found)
    say(f"{len(found) - open_} of {len(found)} conditions found")
    return min(open_, 1)


def _table() -> int:
    """Both verdicts of every mutant; the status is 1 if one that was caught is not any more."""
    before, after = (Verdicts.read(FILES[one], "") for one in ("old", "new"))
    worse: list[str] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    for one in read():
        old, new = before.results.get(one.id), after.results.get(one.id)
        say(f"{one.id:16} {_said(old):15} {_said(new):15} {one.home.function}: {one.home.text}")
        say(f"{'':48} -> {one.home.mutation}")
        for side, result in (("before", old), ("after", new)):
            if result is not None:
                counts[one.area, side, result.verdict] += 1
            if result is not None and result.left:
                say(f"{'':48} {side}: {result.left} stages of its tests not run")
            if result is not None and result.why:
                say(f"{'':48} {side}: {result.why}")
        if old is not None and old.verdict in CAUGHT and new is not None:
            worse += [one.id] if new.verdict not in CAUGHT else []
    for (area, side, verdict), number in sorted(counts.items()):
        say(f"{area:16} {side:8} {verdict:15} {number:3}")
    say(f"caught before {before.commit or '-'} and not after: {', '.join(worse) or 'none'}")
    return min(len(worse), 1)


def _said(result: Result | None) -> str:
    return "-" if result is None else str(result.verdict)


def say(line: str) -> None:
    """A line of the result, at once."""
    print(line, flush=True)  # noqa: T201 - a command's result


if __name__ == "__main__":
    # So that what was started ends, and the scratch work tree goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
