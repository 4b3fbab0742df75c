"""The page about a month, from what was kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.month.ways import MOORAGE, WAYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD = (
    (
        "| | used | of it leased | idle though wanted | lease hours granted |"
        " servers refused | servers ended early | their lost work | leases late |"
    ),
    "|---|---|---|---|---|---|---|---|---|",
)


def table(results: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """A row for each way."""
    return [*HEAD, *(_row(name, found) for name, found in results.items())]


def _row(name: str, found: Mapping[str, Any]) -> str:
    counts, capacity = found["counts"], found["capacity"]
    created, refused = (
        sum(counts.get(f"{kind} servers {what}", 0) for kind in ("bounded", "preemptible"))
        for what in ("created", "refused")
    )
    ended = counts.get("servers ended for a lease", 0)
    cells = (
        WAYS[name].title,
        f"{found['utilisation']:.1%}",
        f"{found['leased'] / capacity:.1%}",
        f"{found['set_aside']:,.0f} VCPU h",
        f"{counts['lease hours granted'] / counts['lease hours asked for']:.1%}",
        f"{refused / (created + refused):.1%}",
        f"{ended:,}",
        f"{found['lost'] / (found['leased'] + found['loose']):.1%}",
        f"{counts['leases late']} of {counts['leases started']:,}",
    )
    return f"| {' | '.join(cells)} |"


def fewer(results: Mapping[str, Mapping[str, Any]]) -> Mapping[str, float]:
    """By how much there are fewer idle reserved hours with Moorage than in each other way."""
    ours = results[MOORAGE.name]["set_aside"]
    return {
        name: 1 - ours / found["set_aside"]
        for name, found in results.items()
        if name != MOORAGE.name and found["set_aside"]
    }
