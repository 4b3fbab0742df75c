"""Add members by description: a new role, or more of one there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.describe import read_role
from moorage.domain.errors import ConcurrentUpdate, Infeasible, InvalidDescription, StaleGeneration
from moorage.usecases.access import own_ensemble
from moorage.usecases.additions import answered
from moorage.usecases.change_ensemble import Change, change_ensemble
from moorage.usecases.create_ensemble import Made
from moorage.usecases.patience import again
from moorage.usecases.writing import current_decision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming


@dataclass(frozen=True, slots=True)
class Adding:
    """A role as described, or a known one's name and how many more; and how to place them."""

    described: Mapping[str, object]
    ask: Ask | None = None


def add_members(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    adding: Adding,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> Made:
    """Add `count` members; of a known role only its name and the count are said.

    They are placed at once if the ensemble is placed, all present members staying put. The same
    request under the same id adds nothing more: it gets the ensemble as it is.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: the description, or a known role described anew.
        Infeasible: they cannot be placed; nothing was added.
        DuplicateName: the id was used by another request.
    """

    def attempt() -> Made:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        if answered(ensemble, naming):
            return Made(ensemble, current_decision(parts.store, ensemble))
        change = _change(ensemble, adding.described, naming)
        try:
            return change_ensemble(parts, caller, ensemble_id, change, adding.ask, dry_run=dry_run)
        except StaleGeneration as moved:
            # It is not the caller who named it: look again.
            raise ConcurrentUpdate(moved.message, subject=moved.subject) from moved
        except Infeasible:
            # The same request on another connection was quicker, and took the room: one answer.
            ensemble = own_ensemble(parts.store, caller, ensemble_id)
            if answered(ensemble, naming):
                return Made(ensemble, current_decision(parts.store, ensemble))
            raise

    return again(parts, attempt)


def _change(ensemble: Ensemble, described: Mapping[str, object], naming: Naming) -> Change:
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
    return Change(members=(change,), generation=ensemble.generation, naming=naming)
