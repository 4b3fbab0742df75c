"""Asks Nova for its requests; `python -m tests.conformance.nova_requests.recording` records them.

Nova runs in the environment that `make` builds for the small cloud (`.cache/minicloud`).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conformance.nova_requests.cases import ALIASES, cases

HERE = Path(__file__).parent
PYTHON = HERE.parents[2] / ".cache" / "minicloud" / "bin" / "python"
RECORDED = HERE / "recorded.json"
SEED, COUNT = 34, 400
SECONDS = 300

Case = dict[str, Any]
Answer = dict[str, Any]


def ask_nova(asked: list[Case]) -> list[Answer]:
    """Nova's answer to each case."""
    done = subprocess.run(
        [PYTHON, HERE / "nova_answers.py"],
        input=json.dumps({"aliases": ALIASES, "cases": asked}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers: list[Answer] = json.loads(done.stdout)
    assert len(answers) == len(asked)
    return answers


def recorded() -> list[tuple[Case, Answer]]:
    """The recorded cases with Nova's answers."""
    pairs = json.loads(RECORDED.read_text(encoding="utf-8"))
    return [(case, answer) for case, answer in pairs]


def record() -> None:
    """Write the cases of the seed with Nova's answers, one pair a line."""
    asked = cases(SEED, COUNT)
    pairs = zip(asked, ask_nova(asked), strict=True)
    lines = ",\n".join(json.dumps(pair, separators=(",", ":")) for pair in pairs)
    RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
