"""What becomes of the providers whose devices are gone. Pure.

What is in use is never lost: it stays, with everything reserved, as long as somebody has an
allocation on it. Below a root provider of Nova's no provider is deleted: nova-compute keeps the
providers that it has read, and reports no more when one of them is gone. They stay without
inventories, until somebody prunes them while nova-compute does not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.agent.facts import Caution
from moorage.agent.inventory_merge import in_order, kept_back
from moorage.agent.plan_steps import DeleteProvider, PutInventories
from moorage.agent.target import is_carrier

if TYPE_CHECKING:
    from moorage.agent.ledger_tree import PresentProvider
    from moorage.agent.plan_steps import Step
    from moorage.agent.tree_match import TreeMatch


def removal_steps(tree: TreeMatch, cautions: list[Caution]) -> list[Step]:
    """The steps for all that is gone, and cautions about what stays."""
    steps: list[Step] = []
    for key, provider in sorted(tree.gone.items()):
        if is_carrier(key):
            if not _carries(tree, key, provider, cautions):
                steps += _gone(tree, provider)
        elif tree.stays(provider):
            said = "its device is gone, and it is in use; it stays, with all of it reserved"
            cautions.append(Caution("vanished-in-use", provider.name, said))
            before = in_order(provider.inventories)
            kept = tuple(kept_back(one) for one in before)
            if kept != before:
                steps.append(PutInventories(provider.uuid, provider.name, kept, before))
        else:
            steps += _gone(tree, provider)
    return steps


def _gone(tree: TreeMatch, provider: PresentProvider) -> list[Step]:
    """Remove a provider that is not in use."""
    if not tree.keeps_all:
        return [DeleteProvider(provider.uuid, provider.name)]
    before = in_order(provider.inventories)
    return [PutInventories(provider.uuid, provider.name, (), before)] if before else []


def _carries(tree: TreeMatch, key: str, provider: PresentProvider, cautions: list[Caution]) -> bool:
    """Whether a carrier that is gone still has what could not be moved."""
    stuck = any(one.code == "not-moved" for one in cautions)
    if stuck or provider.uuid in tree.allowed.in_use:
        said = f"{key} is gone, and stays: it is in use"
        cautions.append(Caution("in-use", provider.name, said))
        return True
    return False
