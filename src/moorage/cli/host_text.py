"""The state of a host in words, and why it is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.times import minute

if TYPE_CHECKING:
    from collections.abc import Mapping


def state_and_why(state: str, reasons: str) -> str:
    """A host's state with its reasons: `closed: disabled`, `closed by ann since ...`, `open`."""
    if not reasons:
        return state
    return reasons if reasons.startswith(state) else f"{state}: {reasons}"


def closed_for(one: Mapping[str, Any]) -> str:
    """A reason in words: `disabled`, `away until 2026-12-07T07:00Z (maintenance: new firmware)`."""
    if one["why"] not in {"away", "planned"}:
        by = f" by {one['user_id']}" if one.get("user_id") else ""
        since = "" if one["start"] is None else f" since {minute(one['start'])}"
        reason = f" ({one['reason']})" if one["reason"] else ""
        word = "closed" if one["why"] == "operator" else one["why"]
        return f"{word}{by}{since}{reason}"
    # An answer about members does not say which window it is.
    plan = ": ".join(part for part in (one["kind"], one["reason"]) if part)
    named = f" ({plan})" if plan else ""
    end = "" if one["end"] is None else f" until {minute(one['end'])}"
    if one["why"] == "away":
        return f"away{end}{named}"
    return f"away from {minute(one['start'])}{end}{named}"


def why(host: Mapping[str, Any]) -> str:
    """All reasons why a host is or will be closed, in words."""
    return "; ".join(map(closed_for, host["closed"]))
