"""Add members by description: a new role, or more of one there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.describe import read_role
from moorage.domain.errors import InvalidDescription
from moorage.usecases.access import own_ensemble
from moorage.usecases.change_ensemble import Change, change_ensemble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.create_ensemble import Made
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


def add_members(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    described: Mapping[str, object],
    ask: Ask | None,
    *,
    dry_run: bool = False,
) -> Made:
    """Add `count` members; of a known role only its name and the count are said.

    They are placed at once if the ensemble is placed, all present members staying put.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: the description, or a known role described anew.
        Infeasible: they cannot be placed; nothing was added.
    """
    ensemble = own_ensemble(parts.store, caller, ensemble_id)
    name = described.get("name")
    change: Mapping[str, object] = described
    if any(role.name == name for role in ensemble.roles):
        if set(described) - {"name", "count"}:
            raise InvalidDescription(
                f"role {name} is described already: say only how many more", path="member.role"
            )
        # The size does not matter here; the reader checks the rest.
        more = read_role({**described, "resources": {"VCPU": 1}}, "member.role").count
        change = {"name": name, "count": ensemble.count(str(name)) + more}
    return change_ensemble(
        parts,
        caller,
        ensemble_id,
        Change(members=(change,), generation=ensemble.generation),
        ask,
        dry_run=dry_run,
    )
