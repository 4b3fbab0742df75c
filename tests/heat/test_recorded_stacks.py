"""Generated templates mean to Moorage what they mean to Heat, whose engine's answers are recorded.

`python -m tests.heat_judge record` writes them anew; see `docs/reference/heat-templates.md`.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.heat_judge import heat_side
from tests.heat_judge.case import Case
from tests.heat_judge.comparison import compare

RECORDED = Path(__file__).parents[1] / "heat_judge" / "recorded" / "generated.json"
ANSWERS: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
SHARES = 10
LEAST = 300


def test_there_are_enough() -> None:
    assert len(ANSWERS) >= LEAST


@pytest.mark.parametrize("share", range(SHARES))
def test_recorded_stacks_are_read_as_heat_reads_them(share: int) -> None:
    wrong = []
    for one in ANSWERS[share::SHARES]:
        found = compare(Case.read(one["case"]), heat_side.read_answer(one["heat"]))
        if found.verdict != "same":
            wrong.append((found.case.label, found.verdict, *found.differences))
    assert wrong == []
