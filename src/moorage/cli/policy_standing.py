"""How an ensemble's policies stand: by where members are now, not by what was decided once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.client.structs import Ensemble, Member, PolicyStatus

UNPLACED = "unplaced"


def standing(
    ensemble: Ensemble, policies: Sequence[Mapping[str, Any]], members: Sequence[Member]
) -> list[str]:
    """One word or few for each policy: `yes (slack 0)`, `NO`, `so far (1 of 3 placed)`, `-`."""
    broken = {one.policy for one in ensemble.compliance}
    decision = ensemble.decision
    decided = {one.name: one for one in decision.policies} if decision else {}
    known = {one.member for one in decision.assignments} if decision else set()
    tags = {role.name: set(role.tags) for role in ensemble.members}
    told = []
    for policy in policies:
        concerned = [one for one in members if _selected(one, policy, tags)]
        placed = {one.name for one in concerned if one.status != UNPLACED}
        status = decided.get(policy["name"])
        if policy["name"] in broken:
            told.append(_broken(policy, status))
        elif not placed:
            told.append("-")
        elif len(placed) < len(concerned):
            told.append(f"so far ({len(placed)} of {len(concerned)} placed)")
        else:
            told.append(_met(status if placed <= known else None))
    return told


def violations(ensemble: Ensemble) -> list[str]:
    """`VIOLATED apart: host h1 holds 2` for whatever is broken now; a wish is only not met."""
    required = {one.name for one in ensemble.policies if not isinstance(one.strength, dict)}
    return [
        f"{'VIOLATED' if one.policy in required else 'not met:'} {one.policy}: {one.text}"
        for one in ensemble.compliance
    ]


def _broken(policy: Mapping[str, Any], status: PolicyStatus | None) -> str:
    if not isinstance(policy.get("strength"), dict):
        return "NO"
    return f"no (costs {status.penalty})" if status is not None and status.penalty else "no"


def _met(status: PolicyStatus | None) -> str:
    """Slack was counted over the members decided upon; with others it would mislead."""
    if status is None or status.slack is None or not status.satisfied:
        return "yes"
    return f"yes (slack {status.slack})"


def _selected(member: Member, policy: Mapping[str, Any], tags: Mapping[str, set[str]]) -> bool:
    role = member.role or member.name.partition("[")[0]
    return any(
        one in (role, member.name) or (one.startswith("tag:") and one[4:] in tags.get(role, ()))
        for one in _selectors(policy)
    )


def _selectors(policy: Mapping[str, Any]) -> Iterator[str]:
    for one in policy.get("zip") or policy.get("members") or ():
        yield f"tag:{one['tag']}" if isinstance(one, dict) else str(one)
