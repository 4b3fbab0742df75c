"""The recorded ranges, benchmarks/ranges.toml: one section per benchmark."""

from __future__ import annotations

from pathlib import Path

_SMALL = 2.0
"""Ratios are smaller; one digit would say little of them."""
RANGES = Path(__file__).parent / "ranges.toml"


def record(section: str, says: str, found: dict[str, float]) -> None:
    """Replace one section of the recorded ranges, keep the others."""
    text = RANGES.read_text(encoding="utf-8") if RANGES.exists() else ""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        if not inside:
            kept.append(line)
    lines = [f"[{section}]", f"# {says}"]
    lines += [
        f'"{name}" = {value:.{3 if value < _SMALL else 1}f}'
        for name, value in sorted(found.items())
    ]
    body = "\n".join([*kept, "", *lines]).strip()
    RANGES.write_text(body + "\n", encoding="utf-8")
