"""The table of folders of templates: what Heat accepts, what compiles, what is refused and why."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.heat_judge.comparison import Compared

NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+\b|\(.*\)$|^in [^:]*: ", re.DOTALL)
"""What differs between refusals for one reason."""
HEAT: Final = (
    ("could not be found", "a type of resource that Heat has not"),
    ("Could not fetch", "names a file that is not in the collection"),
    ("not assigned", "a property that the resource requires is missing"),
    ("Unknown Property", "a property that the resource no longer has"),
    ("was not provided", "a parameter without a value"),
    ("template version is invalid", "a version that Heat does not know"),
    ("", "a value that Heat refuses, invented ones for parameters among them"),
)
"""What Heat's reason says -> how the table words it; the first that fits."""


@dataclass
class Row:
    """One folder's numbers."""

    templates: int = 0
    valid: int = 0
    with_servers: int = 0
    compile: int = 0
    """Of those with servers: read as Heat reads them."""
    differ: int = 0
    invalid: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


@dataclass
class Table:
    """All folders' numbers."""

    rows: dict[str, Row]

    def plain(self) -> dict[str, Any]:
        """For a file."""
        return {name: asdict(row) for name, row in self.rows.items()}

    def text(self) -> str:
        """For a person."""
        head = f"{'':32} templates valid with servers compile differ refused"
        lines = [head]
        for name, row in self.rows.items():
            refused = sum(row.refused.values())
            numbers = (row.templates, row.valid, row.with_servers, row.compile, row.differ, refused)
            widths = (9, 5, 12, 7, 6, 7)
            cells = " ".join(f"{n:{w}}" for n, w in zip(numbers, widths, strict=True))
            lines.append(f"{name:32} {cells}")
            for title, reasons in (("not valid", row.invalid), ("refused", row.refused)):
                lines += [f"    {title}: {n:4} {why}" for why, n in reasons.items()]
        return "\n".join(lines)


def table(found: Mapping[str, Sequence[Compared]]) -> Table:
    """The numbers of what was compared, by folder."""
    return Table({name: _row(compared) for name, compared in found.items()})


def _row(compared: Sequence[Compared]) -> Row:
    invalid = Counter(_worded(one.heat.reason) for one in compared if one.heat.outcome == "refused")
    serving = [one for one in compared if one.has_servers]
    refused = Counter(
        NAMES.sub("…", one.moorage.reason).strip()
        for one in serving
        if one.moorage.outcome != "expanded"
    )
    return Row(
        templates=len(compared),
        valid=sum(one.heat.outcome == "expanded" for one in compared),
        with_servers=len(serving),
        compile=sum(one.verdict == "same" for one in serving),
        differ=sum(one.verdict in {"differs", "broken"} for one in serving),
        invalid=dict(invalid.most_common()),
        refused=dict(refused.most_common()),
    )


def _worded(reason: str) -> str:
    return next(words for part, words in HEAT if part in reason)
