"""An explanation in words: the conflict, and the changes that a solve has shown to help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def told(explanation: Mapping[str, Any]) -> str:
    """Two lines: what runs into what, and what would work.

    infeasible [policy]  conflict (minimal): db-ha needs 4 racks  <->  racks usable: 3
    relaxations (each solved): 1. db-ha keep 3->2: fits now   2. db count 4->5: fits now
    """
    verdict = explanation.get("verdict", "infeasible")
    parts = [side(item) for item in explanation.get("conflict") or ()]
    first = f"{verdict} [{explanation.get('stage', '?')}]"
    if parts:
        kind = "conflict (minimal)" if explanation.get("minimal") else "conflict"
        first += f"  {kind}: " + "  <->  ".join(parts)
    elif explanation.get("note"):
        first += f"  {explanation['note']}"
    lines = [first]
    relaxations = explanation.get("relaxations") or ()
    if relaxations:
        numbered = (f"{n}. {relaxation(item)}" for n, item in enumerate(relaxations, start=1))
        proved = all(item.get("verified") for item in relaxations)
        lines.append(
            ("relaxations (each solved): " if proved else "relaxations: ") + "   ".join(numbered)
        )
    return "\n".join(lines)


def side(item: Mapping[str, Any]) -> str:
    """One side of a conflict: a policy or role and what it needs, or a fact of the fleet."""
    if "topology" in item:
        return f"{item['topology']}: {item.get('have')}"
    kind, name = next(
        ((key, value) for key, value in item.items() if key not in {"needs", "have"}), ("", "?")
    )
    subject = str(name) if kind == "policy" else f"{kind} {name}".strip()
    return f"{subject} needs {item['needs']}" if item.get("needs") else subject


def relaxation(item: Mapping[str, Any]) -> str:
    """`db-ha keep 3->2: fits now`."""
    change = dict(item.get("change") or {})
    subject = change.pop("policy", None) or change.pop("member", None) or "?"
    changes = ", ".join(f"{name} {_step(value)}" for name, value in change.items())
    return f"{subject} {changes}: {item.get('result', 'fits now')}"


def _step(value: object) -> str:
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 - before and after
        return f"{_plain(value[0])}->{_plain(value[1])}"
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {inner}" for key, inner in value.items())
    return "-" if value is None else str(value)
