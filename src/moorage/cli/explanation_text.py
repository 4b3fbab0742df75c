"""Explanations of refused requests as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.times import length, minute, period
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


WIDE: Final = 100
"""Relaxations that together are longer than this get a line each."""
_THEN: Final = "fits then"
_BY_NAME: Final = frozenset({"policy", "booked", "stay", "closed", "quota"})
"""Sides of a conflict whose name alone says what they are."""


def explained(explanation: Mapping[str, Any]) -> str:
    """The conflict and the possible changes; two lines in simple cases.

    infeasible [policy]  conflict (minimal): db-ha needs 4 racks  <->  racks usable: 3
    relaxations (each solved): 1. db-ha keep 3->2: fits now   2. db count 4->5: fits now

    infeasible [time]  conflict: lease L1 from 2026-12-07T07:30Z  <->  3 open-ended servers
    relaxations (each solved): 1. --until 2026-12-07T07:30Z   2. --preemptible

    When it fits otherwise, how much of it does now and in which zones are on a last line.
    A conflict of more than two sides has a line for each; further conflicts follow the first.
    """
    head = f"{explanation.get('verdict', 'infeasible')} [{explanation.get('stage', '?')}]"
    lines = _conflict(f"{head}  ", explanation) or [head]
    for more in explanation.get("more_conflicts") or ():
        lines += _conflict("and another ", more)
    note = explanation.get("note")
    if note and len(lines) == 1 and lines[0] == head:
        lines = [f"{head}  {note}"]
    elif note:
        lines.append(f"{'what to do' if explanation.get('stage') == 'quota' else 'note'}: {note}")
    relaxations = explanation.get("relaxations") or ()
    return "\n".join([*lines, *_relaxations(relaxations), *_ahead(explanation, relaxations)])


def _ahead(explanation: Mapping[str, Any], relaxations: Sequence[Mapping[str, Any]]) -> list[str]:
    """When it fits, how much of it fits, and in which zones, as far as no relaxation says that."""
    changes = [dict(one.get("change") or {}) for one in relaxations]
    parts = []
    start, most = explanation.get("earliest_start"), explanation.get("largest")
    # A later start with the same end is a relaxation; a window as long is another thing.
    known = [one["start"][1] for one in changes if "start" in one]
    if start and (start not in known or explanation.get("earliest_beyond")):
        proved = "" if explanation.get("earliest_proved") else " (not proved)"
        if explanation.get("earliest_beyond"):
            # Only ensembles have such a window; they may displace no one.
            whose = proved or " (proved for an ensemble; a lease may start sooner)"
            as_long = period(start, explanation.get("earliest_end"))
            parts.append(f"same length, later: {as_long}{whose}")
        else:
            parts.append(f"earliest start {minute(start)}{proved}")
    if most and not any("count" in one for one in changes):
        parts.append(f"largest amount: {most['role']} {most['count']} of {most['of']}")
    if explanation.get("moves"):
        moves = counted(int(explanation["moves"]), "move")
        parts.append(f"fits after {moves} of other servers: moorage plan create --admit")
    zones = explanation.get("other_zones")
    if zones:
        parts.append(f"other zones: {', '.join(zones)}")
    return ["   ".join(parts)] if parts else []


def _conflict(lead: str, conflict: Mapping[str, Any]) -> list[str]:
    """A conflict on one line, or needs and facts on lines of their own."""
    items = conflict.get("conflict") or ()
    if not items:
        return []
    kind = lead + ("conflict (minimal):" if conflict.get("minimal") else "conflict:")
    stated = {str(item["needs"]).partition(" ")[0] for item in items if item.get("needs")}
    items = [_with_number(item, stated) for item in items]
    if len(items) <= 2:  # noqa: PLR2004 - need and fact
        return [f"{kind} " + "  <->  ".join(side(item) for item in items)]
    needs = [side(item) for item in items if "topology" not in item]
    facts = [side(item) for item in items if "topology" in item]
    return [kind, *(f"  {need}" for need in needs), *(f"  <->  {fact}" for fact in facts)]


def _with_number(item: Mapping[str, Any], stated: Collection[str]) -> Mapping[str, Any]:
    """A fact with the number needed, if no need begins with it or what there is is rounded."""
    have, needed = item.get("have"), item.get("needed")
    plain = isinstance(have, int) or have == "0"
    if needed is None or (plain and (str(needed) in stated or needed == 1)):
        return item
    return {**item, "have": f"{have}, fewer than {needed}"}


def _relaxations(relaxations: Sequence[Mapping[str, Any]]) -> list[str]:
    if not relaxations:
        return []
    proved = all(item.get("verified") for item in relaxations)
    kind = "relaxations (each solved):" if proved else "relaxations:"
    numbered = [f"{n}. {relaxation(item)}" for n, item in enumerate(relaxations, start=1)]
    line = "   ".join(numbered)
    if len(line) <= WIDE:
        return [f"{kind} {line}"]
    return [kind, *(f"  {one}" for one in numbered)]


def side(item: Mapping[str, Any]) -> str:
    """One side of a conflict: a policy or role with its needs, or a fact of the fleet."""
    if "topology" in item:
        have = item.get("have")
        return str(item["topology"]) if have is None else f"{item['topology']}: {have}"
    kind, name = next(
        ((key, value) for key, value in item.items() if key not in {"needs", "have"}), ("", "?")
    )
    subject = minute(str(name)) if kind in _BY_NAME else f"{kind} {name}".strip()
    return f"{subject} needs {item['needs']}" if item.get("needs") else subject


def relaxation(item: Mapping[str, Any]) -> str:
    """A relaxation, `db-ha keep 3->2: fits now`; of a change of time the command's option.

    That it fits at the time that was asked for goes without saying.
    """
    change = dict(item.get("change") or {})
    if "time" in change:
        return _timely(change)
    if "lease" in change:
        return f"--priority {change['priority'][1]}: {item.get('result', 'fits now')}"
    subject = change.pop("policy", None) or change.pop("member", None) or "?"
    if (number := change.pop("alternative", None)) is not None:
        subject = f"{subject} alternative {number}"
    changes = ", ".join(f"{name} {_step(value)}" for name, value in change.items())
    result = item.get("result", "fits now")
    return f"{subject} {changes}" if result == _THEN else f"{subject} {changes}: {result}"


def _timely(change: Mapping[str, Any]) -> str:
    """A change of time: `--until 2026-12-07T07:30Z`, `--preemptible`, `--lead 20m`, ..."""
    if "until" in change:
        return f"--until {minute(change['until'][1])}"
    if "preemptible" in change:
        return "--preemptible"
    for field in ("lead", "cleaning"):
        if field in change:
            return f"--{field} {length(str(change[field][1])) or '0s'}"
    if "end" in change:
        return f"end at {minute(change['end'][1])}"
    return f"start after {minute(change['start'][1])}"


def _step(value: object) -> str:
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 - before and after
        return f"{_plain(value[0])}->{_plain(value[1])}"
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {inner}" for key, inner in value.items())
    if isinstance(value, list):
        return ",".join(map(_plain, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)
