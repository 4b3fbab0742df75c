"""The plan: what leads from the tree that is present to the target. Pure.

What is in use is never lost: a device that is gone stays, with everything reserved, as long as
somebody has an allocation on it, and a class moves between carriers with its allocations or not at
all. What is gone is found in `tree_match`, what becomes of it in `removal_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.agent.carrier_moves import NoRoom, plan_carriers
from moorage.agent.facts import Caution
from moorage.agent.inventory_merge import device_inventories, in_order, merged, merged_traits
from moorage.agent.plan_steps import (
    CreateProvider,
    MoveProvider,
    Plan,
    PutInventories,
    PutTraits,
    Reshape,
)
from moorage.agent.removal_steps import removal_steps
from moorage.agent.target import OWNED, ROOT, VANISHED, is_carrier, provider_name
from moorage.agent.tree_match import USUAL, match_tree

if TYPE_CHECKING:
    from moorage.agent.ledger_tree import PresentTree
    from moorage.agent.plan_steps import Step
    from moorage.agent.target import Target, TargetProvider
    from moorage.agent.tree_match import Allowed, TreeMatch
    from moorage.domain.providers import Inventory


def make_plan(target: Target, present: PresentTree, allowed: Allowed = USUAL) -> Plan:
    """Plan the steps for the tree; pools have a plan of their own (`pools`)."""
    cautions: list[Caution] = []
    tree = match_tree(target, present, allowed, cautions)
    planner = _Planner(tree, cautions)
    steps: list[Step] = []
    steps += planner.created()
    steps += planner.traits()
    steps += planner.moved()
    steps += planner.carriers()
    steps += planner.devices()
    steps += removal_steps(tree, cautions)
    return Plan(tuple(steps), tuple(dict.fromkeys(cautions)))


@dataclass(frozen=True, slots=True)
class _Planner:
    tree: TreeMatch
    cautions: list[Caution]

    def _caution(self, code: str, subject: str, message: str) -> None:
        self.cautions.append(Caution(code, subject, message))

    def _name(self, key: str) -> str:
        name = provider_name(
            self.tree.target.name if self.tree.target.own_root else self.tree.present.root_name, key
        )
        if key != ROOT and name in self.tree.allowed.taken_names:
            self._caution("name-taken", name, "by a provider of another tree; the name gets an end")
            return f"{name}~{self.tree.uuids[key][:8]}"
        return name

    def created(self) -> list[Step]:
        """Create what is new."""
        tree = self.tree
        return [
            CreateProvider(tree.uuids[key], self._name(key), tree.parent(one))
            for key, one in tree.targets.items()
            if key not in tree.own
        ]

    def traits(self) -> list[Step]:
        """Say what each is, and of what is gone, that it is."""
        own, uuids = self.tree.own, self.tree.uuids
        steps: list[Step] = []
        for key, one in self.tree.targets.items():
            before = own[key].traits if key in own else frozenset()
            wanted = before | {OWNED} if one.unsure else merged_traits(one, before)
            if wanted != before:
                name = self._name(key)
                steps.append(PutTraits(uuids[key], name, wanted, before))
        for provider in self.tree.gone.values():
            wanted = provider.traits | {VANISHED, OWNED}
            stays = self.tree.keeps_all or self.tree.stays(provider)
            if stays and wanted != provider.traits:
                steps.append(PutTraits(provider.uuid, provider.name, wanted, provider.traits))
        return steps

    def moved(self) -> list[Step]:
        """Give what is present the name and the parent that it has now."""
        steps: list[Step] = []
        for key, provider in self.tree.own.items():
            parent, name = provider.parent, self._name(key)
            if key in self.tree.targets:
                parent = self.tree.parent(self.tree.targets[key])
            if parent != provider.parent and not self.tree.allowed.re_parenting:
                said = "it stays below its parent: the service cannot give it another (1.37 can)"
                self._caution("not-re-parented", name, said)
                parent = provider.parent
            if (parent, name) != (provider.parent, provider.name):
                moves = parent != provider.parent
                steps.append(MoveProvider(provider.uuid, provider.name, name, parent, moves))
        return steps

    def carriers(self) -> list[Step]:
        """Change what carries processors and memory, with its allocations."""
        uuids = self.tree.uuids
        wanted = [one for key, one in self.tree.targets.items() if is_carrier(key)]
        present = {key: one for key, one in self.tree.own.items() if is_carrier(key)}
        if not self.tree.target.own_root:
            present.pop(ROOT, None)
        if "numa" in self.tree.target.blind:
            return []
        try:
            plan = plan_carriers(wanted, present, uuids)
        except NoRoom as error:
            return self._not_moved(str(error))
        if plan.transfers and not self.tree.allowed.moving:
            said = "the service does not let the agent move what is in use (role service?)"
            return self._not_moved(said)
        before = {key: in_order(one.inventories) for key, one in present.items()}
        changed = {
            key: some for key, some in plan.inventories.items() if some != before.get(key, ())
        }
        names = {key: self._name(key) for key in changed}
        if not plan.moved_classes or not self.tree.allowed.moving:
            # What loses a class comes first: nothing is there twice in between.
            losing = sorted(changed, key=lambda key: len(changed[key]) - len(before.get(key, ())))
            return [
                PutInventories(uuids[key], names[key], changed[key], before.get(key, ()))
                for key in losing
            ]
        return [
            Reshape(
                {uuids[key]: some for key, some in changed.items()},
                tuple(plan.transfers),
                {uuids[key]: before.get(key, ()) for key in changed},
                {uuids[key]: names[key] for key in changed},
            )
        ]

    def _not_moved(self, why: str) -> list[Step]:
        self._caution("not-moved", self.tree.present.root_name, f"{why}; all stays where it is")
        return []

    def devices(self) -> list[Step]:
        """Change what devices have."""
        own, uuids = self.tree.own, self.tree.uuids
        steps: list[Step] = []
        for key, one in self.tree.targets.items():
            if is_carrier(key) or one.unsure:
                continue
            before: tuple[Inventory, ...] = ()
            if key in own:
                before = in_order(own[key].inventories)
                wanted = device_inventories(one, own[key], self.cautions)
            else:
                wanted = fresh_inventories(one)
            if wanted != before:
                steps.append(PutInventories(uuids[key], self._name(key), wanted, before))
        return steps


def fresh_inventories(one: TargetProvider) -> tuple[Inventory, ...]:
    """The inventories of a new provider."""
    return in_order({name: merged(None, wanted, name) for name, wanted in one.inventories.items()})
