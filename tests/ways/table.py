"""The table of ways in the documentation, which is also what each of them may be at most."""

import re
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from tests.ways.trace import Length

PAGE = Path(__file__).parents[2] / "docs/how-a-request-flows.md"
_ROW = re.compile(r"^\| `([^`]+)` \|((?: [\d,]+ \|)+)$", re.MULTILINE)


def read() -> Mapping[str, Length]:
    """Way -> its numbers in the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {
        name: Length(*(int(one.replace(",", "")) for one in re.findall(r"[\d,]+", numbers)))
        for name, numbers in _ROW.findall(text)
    }


def row(name: str, length: Length) -> str:
    """One way as a row of the table."""
    return f"| `{name}` | " + " | ".join(f"{one:,}" for one in astuple(length)) + " |"


def write(found: Mapping[str, Length]) -> None:
    """Write the numbers that are smaller than in the page; none is ever raised."""
    known = read()
    text = PAGE.read_text(encoding="utf-8")
    for name, length in known.items():
        if name in found:
            text = text.replace(row(name, length), row(name, length.shortest(found[name])))
    PAGE.write_text(text, encoding="utf-8")
