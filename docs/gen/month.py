"""The page about a month lived through in several ways, from the results that were kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from gen.markdown import table

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "month" / "results.json"
OURS: Final = "moorage"
TITLES: Final = {
    OURS: "Moorage",
    "backfill": "Conservative backfilling",
    "pools": "Exclusive pools",
}

ABOUT: Final = """\
The use of capacity that is leased for later: the same month simulated in three ways.

    make bench-month ARGS="--hosts {hosts} --write"

makes the month from a seed, runs it through the service's own use cases and workers with a clock
that is set, and writes this page's numbers and picture. {hosts:,} hosts of 64 VCPU in racks of 25,
{days} days, of which the first four are not counted. It took {took} of processor time; as many ways
run at a time as there are processors, each tells after every day when it will be over, and with
`--folder FOLDER` it goes on from the last whole day after it was interrupted. The same command
finds the same numbers, but for searches that the solver gives up when their time is over.{begun}

- **Leases** ask for 30 % of the capacity: 4 to 24 servers for six hours to four days, asked for one
  to twenty days ahead, half of them with no two on a host. Their owners create all servers the
  instant a lease starts, with its flavor, as Nova does.
- **Other servers** ask for more than the rest, when they want it, and ask again every hour for a
  day. Half of them have an end that their owners declare; those live four days on average, half of
  them less than one. The others may be ended early; they live a day on average, half of them less
  than six hours. Owners declare 1.2 to 3 times the life there will be.

The ways differ in who may use what is promised until the lease starts, and in nothing else: the
same joint search, the same ledger.

- *Moorage*: whoever has declared an end before it, and preemptible servers, which end in time.
  Half an hour before they go, places are looked for once more where fewer of them have to.
- *Conservative backfilling*: whoever has declared an end before it. All servers declare one.
- *Exclusive pools*: nobody. Leases have 45 % of the hosts to themselves, as with Blazar's freepool;
  a smaller pool refuses many of them."""

WORDS: Final = """\
*Idle though wanted* counts VCPU hours of idle capacity, kept for leases, while a waiting request
would have fitted. *Lost work* is the work of servers that were ended for a lease, if nothing of it
was saved; their owners request them again and start from the beginning. *Useful* is the use without
lost work: if work can be saved, the truth lies between the two.
Where none can, ending servers early for leases costs more than it gains here: then let servers
declare an end, or lease what must not be ended. *Servers refused* counts those asked for again,
too."""


def page() -> str:
    """The ways, what came of them, and how the hosts were used."""
    found = json.loads(RESULTS.read_text())
    ways = found["ways"]
    head = (
        "",
        "Used",
        "Useful",
        "Idle though wanted",
        "Lease hours granted",
        "Leases late",
        "Servers refused",
        "Servers ended for a lease",
        "Lost work",
    )
    return "\n\n".join(
        (
            "# A month of leases",
            ABOUT.format(**found | {"took": _took(ways), "begun": _begun(found)}),
            "## What came of it",
            table(head, [_row(TITLES[name], way) for name, way in ways.items()]),
            WORDS,
            _fewer(ways),
            "![Use of the hosts over the month, in three panels](month.svg)",
        )
    )


def _took(ways: dict[str, Any]) -> str:
    """How long each way took."""
    each = [f"{way['cpu_s'] / 60:,.0f} minutes ({_said(name)})" for name, way in ways.items()]
    return f"{', '.join(each[:-1])} and {each[-1]}" if len(each) > 1 else each[0]


def _begun(found: dict[str, Any]) -> str:
    """What a larger fleet costs, of which only the first days were run."""
    begun = found.get("begun")
    if begun is None:
        return ""
    first = "day" if begun["days"] == 1 else f"{begun['days']} days"
    costs = ", ".join(
        f"{cpu_s / begun['days']:,.0f} seconds with {_said(name)}"
        for name, cpu_s in begun["cpu_s"].items()
    )
    return (
        f"\n\nA fleet of {begun['hosts']:,} hosts was not run to the month's end here. Its first"
        f" {first}, in which it fills up and a third of all leases are asked for, took in processor"
        f" time per day: {costs}."
    )


def _said(name: str) -> str:
    """A way's title within a sentence."""
    return TITLES[name] if name == OURS else TITLES[name].lower()


def _row(title: str, way: dict[str, Any]) -> tuple[str, ...]:
    counts, capacity = way["counts"], way["capacity"]
    used = way["leased"] + way["loose"]
    created, refused = (
        sum(counts.get(f"{kind} servers {what}", 0) for kind in ("bounded", "preemptible"))
        for what in ("created", "refused")
    )
    return (
        title,
        f"{used / capacity:.1%}",
        f"{(used - way['lost']) / capacity:.1%}",
        f"{way['set_aside']:,.0f} h",
        f"{counts['lease hours granted'] / counts['lease hours asked for']:.1%}",
        f"{counts['leases late']} of {counts['leases started']:,}",
        f"{refused / (created + refused):.1%}",
        f"{counts.get('servers ended for a lease', 0):,}",
        f"{way['lost'] / used:.1%}",
    )


def _fewer(ways: dict[str, Any]) -> str:
    ours = ways[OURS]["set_aside"]
    against = ", ".join(
        f"**{1 - ours / way['set_aside']:.0%}** fewer than with {_said(name)}"
        for name, way in ways.items()
        if name != OURS and way["set_aside"]
    )
    return f"Idle reserved hours with Moorage: {against}." if against else ""
