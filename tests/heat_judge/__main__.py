"""Compares Moorage's reading of templates with that of Heat's own engine.

    make heat-judge                               # generated templates (SEED=1 COUNT=3000)
    make heat-judge WHAT=emitted                  # what `hot place --emit` writes of them
    make heat-survey FOLDERS="templates more"     # the templates of folders, as a table
    python -m tests.heat_judge record             # write anew what the tests of every push compare

All but the last exit with 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.heat_judge import corpus, heat_side
from tests.heat_judge.comparison import compare_all
from tests.heat_judge.emitted import check
from tests.heat_judge.generator import make
from tests.heat_judge.survey import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.heat_judge.case import Case

RECORDED: Final = Path(__file__).parent / "recorded" / "generated.json"
TRIED: Final = 450
"""Seeds of the recorded cases."""
KEPT: Final = 310
"""The shortest of them, which are recorded."""
TOGETHER: Final = 250
BAD: Final = ("differs", "broken", "refused")
FAIR: Final = ("not known before the stack is made", "longer than 255 characters")
"""Reasons that are right: places hang on an id of Nova's, or on a name that it cannot have."""


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.heat_judge", description=__doc__)
    commands = parser.add_subparsers(required=True)
    generated = commands.add_parser("generated", help="templates made from seeds")
    generated.add_argument("--seed", type=int, default=1)
    generated.add_argument("--count", type=int, default=300)
    generated.set_defaults(act=_generated)
    emitted = commands.add_parser("emitted", help="such templates, written with a decision")
    emitted.add_argument("--seed", type=int, default=1)
    emitted.add_argument("--count", type=int, default=300)
    emitted.set_defaults(act=_emitted)
    survey = commands.add_parser("survey", help="the templates of folders")
    survey.add_argument("folders", nargs="+", type=Path)
    survey.add_argument("--json", type=Path, help="a file for the numbers")
    survey.set_defaults(act=_survey)
    commands.add_parser("record", help="write the recorded cases").set_defaults(act=_record)
    asked = parser.parse_args()
    act: Callable[[argparse.Namespace], int] = asked.act
    sys.exit(act(asked))


def _generated(asked: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    for seeds in _batches(range(asked.seed, asked.seed + asked.count)):
        cases = [make(seed) for seed in seeds]
        for one in compare_all(cases, heat_side.ask(cases)):
            fair = one.verdict == "refused" and any(why in one.moorage.reason for why in FAIR)
            counts["later" if fair else one.verdict] += 1
            if one.verdict in BAD and not fair:
                print(f"{one.case.label}: {one.verdict}", *one.differences, sep="\n    ")
    print(dict(counts))
    return int(any(counts[word] for word in BAD))


def _emitted(asked: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    for seeds in _batches(range(asked.seed, asked.seed + asked.count)):
        counts += check([make(seed) for seed in seeds])
    print(dict(counts))
    return int(bool(counts["wrong"]) or not counts["bound"])


def _survey(asked: argparse.Namespace) -> int:
    found = {}
    for folder in asked.folders:
        cases = list(corpus.cases(folder))
        compared = list(compare_all(cases, heat_side.ask(cases)))
        name = folder.resolve().name
        found[str(folder) if name in found else name] = compared
        for one in compared:
            if one.verdict in BAD:
                print(f"{one.case.label}: {one.verdict}", *one.differences, sep="\n    ")
    numbers = table(found)
    print(numbers.text())
    if asked.json:
        asked.json.write_text(json.dumps(numbers.plain(), indent=1) + "\n", encoding="utf-8")
    return int(any(one.verdict in BAD[:2] for every in found.values() for one in every))


def _record(_asked: argparse.Namespace) -> int:
    cases: list[Case] = [make(seed) for seed in range(TRIED)]
    valid = [
        {"case": case.plain(), "heat": answer}
        for case, answer in zip(cases, heat_side.ask(cases), strict=True)
        if answer["valid"] and not answer["late"]
    ]
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in valid]
    longest = sorted(map(len, lines))[:KEPT][-1]
    kept = ",\n".join([line for line in lines if len(line) <= longest][:KEPT])
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(f"[\n{kept}\n]\n", encoding="utf-8")
    print(f"{KEPT} cases, {RECORDED.stat().st_size:,} bytes")
    return 0


def _batches(seeds: range) -> list[range]:
    return [seeds[i : i + TOGETHER] for i in range(0, len(seeds), TOGETHER)]


if __name__ == "__main__":
    main()
