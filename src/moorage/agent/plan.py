"""The plan: what leads from the tree that is present to the target. Pure.

What is in use is never lost: a device that is gone stays, with everything reserved, as long as
somebody has an allocation on it, and a class moves between carriers with its allocations or not at
all. A source that shows nothing, and a change that would remove most of what there is, are not
believed.

Below a root provider of Nova's no provider is deleted: nova-compute keeps the providers that it has
read, and reports no more when one of them is gone. They stay without inventories, until somebody
prunes them while nova-compute does not run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.agent.carrier_moves import NoRoom, plan_carriers
from moorage.agent.facts import Caution
from moorage.agent.inventory_merge import (
    device_inventories,
    device_model,
    in_order,
    kept_back,
    merged,
    merged_traits,
)
from moorage.agent.plan_steps import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    Plan,
    PutInventories,
    PutTraits,
    Reshape,
)
from moorage.agent.target import (
    OWNED,
    ROOT,
    STORAGE,
    VANISHED,
    is_carrier,
    is_device,
    kind_of,
    provider_name,
    provider_uuid,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.ledger_tree import PresentProvider, PresentTree
    from moorage.agent.plan_steps import Step
    from moorage.agent.target import Target, TargetProvider
    from moorage.domain.providers import Inventory

FEW: Final = 3
"""So many devices may always be removed at once; more only if they are not most of all."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a plan may do."""

    many_removals: bool = False
    re_parenting: bool = True
    in_use: frozenset[str] = frozenset()
    """UUIDs of providers that the service has refused to delete."""
    taken_names: frozenset[str] = frozenset()
    """Names that providers of other trees have."""
    moving: bool = True
    """False: the service has refused to move allocations between carriers."""
    pruning: bool = False
    """Whether providers of what is gone are deleted below another service's root, too."""


def make_plan(target: Target, present: PresentTree, allowed: Allowed = Allowed()) -> Plan:
    """Plan the steps for the tree; pools have a plan of their own (`pools`)."""
    return _Planner(target, present, allowed).plan()


@dataclass
class _Planner:
    target: Target
    present: PresentTree
    allowed: Allowed
    cautions: list[Caution] = field(default_factory=list)

    def plan(self) -> Plan:
        targets = self._reported_here()
        own = self._renumbered(targets)
        gone = {
            key: own[key]
            for key in own.keys() - targets.keys()
            if key != ROOT and not (self._keeps_all and own[key].emptied)
        }
        gone = self._without_parents(self._believed(gone, own), targets, own)
        uuids = self._uuids(targets, own)
        steps: list[Step] = []
        steps += self._created(targets, own, uuids)
        steps += self._traits(targets, own, gone, uuids)
        steps += self._moved(targets, own, uuids)
        steps += self._carriers(targets, own, uuids)
        steps += self._devices(targets, own, uuids)
        steps += self._removed(gone)
        return Plan(tuple(steps), tuple(dict.fromkeys(self.cautions)))

    def _caution(self, code: str, subject: str, message: str) -> None:
        self.cautions.append(Caution(code, subject, message))

    # --- what is there, and what is gone ------------------------------------------------------

    def _reported_here(self) -> dict[str, TargetProvider]:
        """The target without what others report, and without what is new and not understood."""
        elsewhere = self.present.reported_addresses
        found = {}
        for one in self.target.providers:
            if one.address and one.address in elsewhere:
                said = "another service reports this device; the agent does not"
                self._caution("reported-by-others", one.key, said)
            elif not one.unsure or one.key in self.present.own:
                found[one.key] = one
        return found

    def _renumbered(self, targets: Mapping[str, TargetProvider]) -> dict[str, PresentProvider]:
        """The agent's own providers, by the keys that their devices have now.

        Where as many devices of a model are gone as have appeared, their addresses have changed.
        """
        own = dict(self.present.own)
        lost: dict[object, list[str]] = defaultdict(list)
        new: dict[object, list[str]] = defaultdict(list)
        for key in sorted(own.keys() - targets.keys()):
            one = own[key]
            if kind_of(key) not in self.target.blind and VANISHED not in one.traits:
                lost[device_model(key, one.traits, frozenset(one.inventories))].append(key)
        for key in sorted(targets.keys() - own.keys()):
            target = targets[key]
            new[device_model(key, target.traits, frozenset(target.inventories))].append(key)
        for model, keys in lost.items():
            if model is not None and len(keys) == len(new.get(model, ())):
                for before, after in zip(keys, new[model], strict=True):
                    self._caution("renumbered", before, f"its device is {after} now")
                    own[after] = own.pop(before)
        return own

    def _believed(
        self, gone: Mapping[str, PresentProvider], own: Mapping[str, PresentProvider]
    ) -> dict[str, PresentProvider]:
        """What is really gone, and not only out of sight."""
        seen = {key: one for key, one in gone.items() if kind_of(key) not in self.target.blind}
        for kind in sorted({kind_of(key) for key in gone.keys() - seen.keys()}):
            said = f"no {kind} is to be seen any more; what was reported of them stays"
            self._caution("source-empty", self.present.root_name, said)
        if not self.target.pools_known:
            seen.pop(STORAGE, None)
        devices = [key for key in own if is_device(key)]
        lost = [key for key, one in seen.items() if is_device(key) and VANISHED not in one.traits]
        if len(lost) > FEW and 2 * len(lost) > len(devices) and not self.allowed.many_removals:
            said = f"{len(lost)} of {len(devices)} devices are gone at once; nothing is removed"
            self._caution("many-removals", self.present.root_name, said)
            return {key: one for key, one in seen.items() if not is_device(key)}
        return seen

    def _without_parents(
        self,
        gone: Mapping[str, PresentProvider],
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
    ) -> dict[str, PresentProvider]:
        """What is gone without the carriers below which something stays."""
        parents = {
            one.parent
            for key, one in own.items()
            if key not in gone and (key not in targets or not self.allowed.re_parenting)
        }
        return {
            key: one for key, one in gone.items() if not (is_carrier(key) and one.uuid in parents)
        }

    def _uuids(
        self, targets: Mapping[str, TargetProvider], own: Mapping[str, PresentProvider]
    ) -> dict[str, str]:
        """The UUID of each provider by key, present and new."""
        found = {key: one.uuid for key, one in own.items()}
        taken = set(found.values()) | set(self.present.others)
        for key in targets.keys() - found.keys():
            uuid, number = provider_uuid(self.present.root_uuid, key), 1
            while key != ROOT and uuid in taken:  # of a device that has another address by now
                number += 1
                uuid = provider_uuid(self.present.root_uuid, f"{key} {number}")
            found[key] = uuid
        return found

    # --- steps --------------------------------------------------------------------------------

    def _name(self, key: str, uuid: str) -> str:
        name = provider_name(
            self.target.name if self.target.own_root else self.present.root_name, key
        )
        if key != ROOT and name in self.allowed.taken_names:
            self._caution("name-taken", name, "by a provider of another tree; the name gets an end")
            return f"{name}~{uuid[:8]}"
        return name

    def _parent(
        self,
        one: TargetProvider,
        own: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> str | None:
        if one.key == ROOT:
            return None
        if one.parent is None:
            return own[one.key].parent if one.key in own else self.present.root_uuid
        return uuids.get(one.parent, self.present.root_uuid)

    def _created(
        self,
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> list[Step]:
        return [
            CreateProvider(uuids[key], self._name(key, uuids[key]), self._parent(one, own, uuids))
            for key, one in targets.items()
            if key not in own
        ]

    def _traits(
        self,
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
        gone: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> list[Step]:
        steps: list[Step] = []
        for key, one in targets.items():
            before = own[key].traits if key in own else frozenset()
            wanted = before | {OWNED} if one.unsure else merged_traits(one, before)
            if wanted != before:
                name = self._name(key, uuids[key])
                steps.append(PutTraits(uuids[key], name, wanted, before))
        for provider in gone.values():
            wanted = provider.traits | {VANISHED, OWNED}
            stays = self._keeps_all or self._stays(provider)
            if stays and wanted != provider.traits:
                steps.append(PutTraits(provider.uuid, provider.name, wanted, provider.traits))
        return steps

    def _moved(
        self,
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> list[Step]:
        steps: list[Step] = []
        for key, provider in own.items():
            parent, name = provider.parent, self._name(key, provider.uuid)
            if key in targets:
                parent = self._parent(targets[key], own, uuids)
            if parent != provider.parent and not self.allowed.re_parenting:
                said = "it stays below its parent: the service cannot give it another (1.37 can)"
                self._caution("not-re-parented", name, said)
                parent = provider.parent
            if (parent, name) != (provider.parent, provider.name):
                moves = parent != provider.parent
                steps.append(MoveProvider(provider.uuid, provider.name, name, parent, moves))
        return steps

    def _carriers(
        self,
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> list[Step]:
        wanted = [one for key, one in targets.items() if is_carrier(key)]
        present = {key: one for key, one in own.items() if is_carrier(key)}
        if not self.target.own_root:
            present.pop(ROOT, None)
        if "numa" in self.target.blind or any(one.unsure for one in wanted):
            return []
        try:
            plan = plan_carriers(wanted, present, uuids)
        except NoRoom as error:
            self._caution("not-moved", self.present.root_name, f"{error}; all stays where it is")
            return []
        if plan.transfers and not self.allowed.moving:
            said = "the service does not let the agent move what is in use (role service?)"
            self._caution("not-moved", self.present.root_name, f"{said}; all stays where it is")
            return []
        before = {key: in_order(one.inventories) for key, one in present.items()}
        changed = {
            key: some for key, some in plan.inventories.items() if some != before.get(key, ())
        }
        names = {key: self._name(key, uuids[key]) for key in changed}
        if not plan.moved_classes or not self.allowed.moving:
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

    def _devices(
        self,
        targets: Mapping[str, TargetProvider],
        own: Mapping[str, PresentProvider],
        uuids: Mapping[str, str],
    ) -> list[Step]:
        steps: list[Step] = []
        for key, one in targets.items():
            if is_carrier(key) or one.unsure:
                continue
            before: tuple[Inventory, ...] = ()
            if key in own:
                before = in_order(own[key].inventories)
                wanted = device_inventories(one, own[key], self.cautions)
            else:
                wanted = fresh_inventories(one)
            if wanted != before:
                steps.append(
                    PutInventories(uuids[key], self._name(key, uuids[key]), wanted, before)
                )
        return steps

    # --- what is gone -------------------------------------------------------------------------

    @property
    def _keeps_all(self) -> bool:
        """Whether another service, which keeps what it has read, has the root provider."""
        return not self.target.own_root and not self.allowed.pruning

    def _stays(self, provider: PresentProvider) -> bool:
        return bool(provider.allocations) or provider.uuid in self.allowed.in_use

    def _removed(self, gone: Mapping[str, PresentProvider]) -> list[Step]:
        steps: list[Step] = []
        for key, provider in sorted(gone.items()):
            if is_carrier(key):
                if not self._carries(key, provider):
                    steps += self._gone(provider)
            elif self._stays(provider):
                said = "its device is gone, and it is in use; it stays, with all of it reserved"
                self._caution("vanished-in-use", provider.name, said)
                before = in_order(provider.inventories)
                kept = tuple(kept_back(one) for one in before)
                if kept != before:
                    steps.append(PutInventories(provider.uuid, provider.name, kept, before))
            else:
                steps += self._gone(provider)
        return steps

    def _gone(self, provider: PresentProvider) -> list[Step]:
        """Remove a provider that is not in use."""
        if not self._keeps_all:
            return [DeleteProvider(provider.uuid, provider.name)]
        before = in_order(provider.inventories)
        return [PutInventories(provider.uuid, provider.name, (), before)] if before else []

    def _carries(self, key: str, provider: PresentProvider) -> bool:
        """Whether a carrier that is gone still has what could not be moved."""
        stuck = any(one.code == "not-moved" for one in self.cautions)
        if stuck or provider.uuid in self.allowed.in_use:
            self._caution("in-use", provider.name, f"{key} is gone, and stays: it is in use")
            return True
        return False


def fresh_inventories(one: TargetProvider) -> tuple[Inventory, ...]:
    """The inventories of a new provider."""
    return in_order({name: merged(None, wanted, name) for name, wanted in one.inventories.items()})
