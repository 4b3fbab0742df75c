"""What of a node's target is present: the providers of both by one key, and what is gone. Pure.

A source that shows nothing, and a change that would remove most of what there is, are not believed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution
from moorage.agent.inventory_merge import device_model
from moorage.agent.target import (
    ROOT,
    STORAGE,
    VANISHED,
    is_carrier,
    is_device,
    kind_of,
    provider_uuid,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.ledger_tree import PresentProvider, PresentTree
    from moorage.agent.target import Target, TargetProvider

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


USUAL: Final = Allowed()


@dataclass(frozen=True, slots=True)
class TreeMatch:
    """The providers of a node by key, as they are and as they should be."""

    target: Target
    present: PresentTree
    allowed: Allowed
    targets: Mapping[str, TargetProvider]
    """What the agent reports here."""
    own: Mapping[str, PresentProvider]
    """The agent's own providers that are present."""
    gone: Mapping[str, PresentProvider]
    """Those of `own` whose devices are gone."""
    uuids: Mapping[str, str]
    """The UUID of each provider, present and new."""

    @property
    def keeps_all(self) -> bool:
        """Whether another service, which keeps what it has read, has the root provider."""
        return _keeps_all(self.target, self.allowed)

    def stays(self, provider: PresentProvider) -> bool:
        """Whether a provider whose device is gone is in use."""
        return bool(provider.allocations) or provider.uuid in self.allowed.in_use

    def parent(self, one: TargetProvider) -> str | None:
        """The UUID of the parent that a provider should have."""
        if one.key == ROOT:
            return None
        if one.parent is None:
            return self.own[one.key].parent if one.key in self.own else self.present.root_uuid
        return self.uuids.get(one.parent, self.present.root_uuid)


def match_tree(
    target: Target, present: PresentTree, allowed: Allowed, cautions: list[Caution]
) -> TreeMatch:
    """Match the present tree with the target; what is not believed is added to the cautions."""
    return _Matcher(target, present, allowed, cautions).match()


def _keeps_all(target: Target, allowed: Allowed) -> bool:
    return not target.own_root and not allowed.pruning


@dataclass(frozen=True, slots=True)
class _Matcher:
    target: Target
    present: PresentTree
    allowed: Allowed
    cautions: list[Caution]

    def match(self) -> TreeMatch:
        targets = self._reported_here()
        own = self._renumbered(targets)
        keeps_all = _keeps_all(self.target, self.allowed)
        gone = {
            key: own[key]
            for key in own.keys() - targets.keys()
            if key != ROOT and not (keeps_all and own[key].emptied)
        }
        return TreeMatch(
            self.target,
            self.present,
            self.allowed,
            targets,
            own,
            self._without_parents(self._believed(gone, own), targets, own),
            self._uuids(targets, own),
        )

    def _caution(self, code: str, subject: str, message: str) -> None:
        self.cautions.append(Caution(code, subject, message))

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
