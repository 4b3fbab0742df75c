"""How many members of a role each host's devices can serve, kept from request to request.

Requests for the same devices come again and again while bookings change a few hosts in between. So
what was found for a role is kept with the trees. The next request with such a role compares what is
free now with what was free then, and judges the hosts anew whose providers differ. What is compared
are values, not revisions: so it holds for any period, for a snapshot in which some bookings were
changed to try it, and for one without the bookings of members that move.

Free amounts are compared in steps of what the role asks for, up to what `MAX_COUNTED` members need:
a byte or two per provider, and a booking that changes no answer is not even noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.role_filters import unchanging_filters
from moorage.engine.devices.slot_requirements import role_requirements
from moorage.engine.devices.tree_judgement import serving, total_demand, whole
from moorage.engine.state.kept_columns import are_same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.request_groups import Group
    from moorage.engine.devices.device_trees import DeviceTrees
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.role_filters import UnchangingFilters
    from moorage.engine.devices.slot_requirements import RoleRequirements

    Ints: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

MAX_COUNTED: Final = 8
"""Up to here members are counted; a host that can serve this many may serve any number."""
ANSWERS_KEPT: Final = 1_024
"""Trees whose answers are kept for one role."""
_ANSWER: Final = 200
"""Bytes that an answer takes beside the features of its tree."""


@dataclass(frozen=True, eq=False)
class _Class:
    """What a role's possible providers have free of one class."""

    number: int
    positions: Ints
    """[n] of the providers that may give it to the role."""
    step: int
    most: int
    """Steps that `MAX_COUNTED` members take."""
    room: NDArray[np.unsignedinteger]
    """[n] steps free, up to `most`."""

    @classmethod
    def of(cls, requirements: RoleRequirements) -> Iterator[_Class]:
        """The classes that a role asks for, with nothing compared yet."""
        demand, _, step = total_demand([(requirements, MAX_COUNTED)])
        for k in sorted(demand):
            slots = [one for one in requirements.slots if any(c == k for c, _ in one.amounts)]
            able = np.logical_or.reduce([slot.own | slot.lends for slot in slots])
            positions = np.flatnonzero(able).astype(np.int32)
            most = demand[k] // step[k]
            yield cls(k, positions, step[k], most, np.zeros(0, dtype=np.min_scalar_type(most)))

    def now(self, devices: Devices) -> _Class:
        """The same with what is free of these devices."""
        free = devices.free[:, self.number][self.positions]
        return replace(self, room=whole(free, self.most, self.step).astype(self.room.dtype))


@dataclass(frozen=True, eq=False)
class RoleRules:
    """What a role asks of devices, and who meets it whatever is booked."""

    requirements: RoleRequirements
    filters: UnchangingFilters
    """Of hosts for one member."""
    trees: DeviceTrees
    made_from: tuple[NDArray[np.generic] | None, ...]
    """Unit rules, traits and aggregates."""

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        masks = (mask for slot in self.requirements.slots for mask in (slot.own, slot.lends))
        arrays = {id(one): one for one in (*masks, *self.requirements.required)}
        return sum(one.nbytes for one in (*arrays.values(), *self.filters.masks))


@dataclass(frozen=True, eq=False)
class RoleCapacity:
    """How many members of a role the devices of H hosts can serve."""

    requirements: RoleRequirements
    trees: DeviceTrees
    classes: tuple[_Class, ...]
    served: NDArray[np.uint8]
    """[H] members of the role that the host may serve alone, up to `counted`."""
    counted: int = 0
    answers: dict[tuple[int, bytes], bool] = field(default_factory=dict, repr=False)
    """Number of members and features of a tree -> whether it may serve so many."""

    @classmethod
    def unknown(
        cls, requirements: RoleRequirements, trees: DeviceTrees, hosts: int
    ) -> RoleCapacity:
        """Nothing is known of so many hosts."""
        classes = tuple(_Class.of(requirements))
        return cls(requirements, trees, classes, np.zeros(hosts, dtype=np.uint8))

    def max_members(self, members: int) -> NDArray[np.int64]:
        """[H] upper bound of the members that each host could serve, if there are so many."""
        found = np.minimum(self.served.astype(np.int64), members)
        if members > MAX_COUNTED:
            found[found == MAX_COUNTED] = members
        return found

    @property
    def serves_one(self) -> Bools:
        """[H] hosts that may serve one member."""
        return self.served > 0

    def renewed(self, devices: Devices, members: int) -> RoleCapacity:
        """The same for these devices, counted up to so many members."""
        classes = tuple(one.now(devices) for one in self.classes)
        served, last = self.served, min(max(members, 1), MAX_COUNTED)
        if self.counted:
            changed = self._changed(classes)
            if len(changed):
                served = served.copy()
                self._count(devices, served, changed, (0, self.counted))
        if last > self.counted:
            rest = np.flatnonzero(served == self.counted)
            served = served.copy()
            self._count(devices, served, rest, (self.counted, last))
        if served is self.served:
            return self
        return replace(self, classes=classes, served=served, counted=max(last, self.counted))

    def _changed(self, classes: tuple[_Class, ...]) -> Ints:
        """Rows of the hosts of which anything differs from what was compared before."""
        differing = [
            one.positions[one.room != now.room]
            for one, now in zip(self.classes, classes, strict=True)
        ]
        positions = np.concatenate(differing) if differing else np.zeros(0, dtype=np.int64)
        if not len(positions):
            return positions
        return self.trees.hosts_with(positions)

    def _count(
        self, devices: Devices, served: NDArray[np.uint8], hosts: Ints, counts: tuple[int, int]
    ) -> None:
        """Count for some hosts, which serve at least the first of `counts`, up to the second."""
        first, last = counts
        served[hosts] = first
        for count in range(first + 1, last + 1):
            if not len(hosts):
                break
            hosts = hosts[serving(devices, self.requirements, count, hosts, self.answers)]
            served[hosts] = count
        for oldest in list(self.answers)[:-ANSWERS_KEPT]:
            self.answers.pop(oldest, None)

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        arrays = (one for each in self.classes for one in (each.positions, each.room))
        texts = sum(len(text) + _ANSWER for _, text in list(self.answers))
        return self.served.nbytes + sum(one.nbytes for one in arrays) + texts


def role_rules(
    role: Role, devices: Devices, aggregates: Mapping[str, Bools], hosts: int
) -> RoleRules:
    """The rules of a role for devices of so many hosts.

    `aggregates` has, by aggregate UUID, [H] whether the host's root is in it.
    """
    trees = devices.trees
    key, made_from = (trees.key, *_asked_by(role)), tuple(_made_from(role, devices))
    kept = trees.kept.get(key)
    if (
        not isinstance(kept, RoleRules)
        or kept.trees is not trees
        or not are_same(kept.made_from, made_from)
    ):
        requirements = role_requirements(role, devices, aggregates)
        filters = unchanging_filters(role, requirements, devices, aggregates, hosts)
        kept = RoleRules(requirements, filters, trees, made_from)
        trees.kept.put(key, kept, kept.size)
    return kept


def role_capacity(
    role: Role, rules: RoleRules, devices: Devices, hosts: int, members: int
) -> RoleCapacity:
    """What the devices of so many hosts can serve of a role with so many members."""
    trees = devices.trees
    key = (trees.key, *_asked_by(role), devices.emptied)
    kept = trees.kept.get(key)
    known = (
        kept
        if isinstance(kept, RoleCapacity) and kept.requirements is rules.requirements
        else RoleCapacity.unknown(rules.requirements, trees, hosts)
    )
    found = known.renewed(devices, members)
    if found is not kept:
        trees.kept.put(key, found, found.size)
    return found


def _made_from(role: Role, devices: Devices) -> Iterator[NDArray[np.generic] | None]:
    rules = devices.rules
    parts: tuple[Role | Group, ...] = (role, *role.groups)
    for name in sorted({name for one in parts for name in one.resources}):
        units = rules.units[devices.classes.index(name)]
        yield from (units.position, units.min_unit, units.max_unit, units.step_size)
    traits = {name for one in parts for some in (*one.required, one.forbidden) for name in some}
    yield from (rules.traits.get(name) for name in sorted(traits))
    aggregates = {name for one in parts for some in one.member_of for name in some}
    yield from (rules.aggregates.get(name) for name in sorted(aggregates))


def _asked_by(role: Role) -> tuple[object, ...]:
    """Equal for roles that ask for the same."""
    return (
        role.kind if role.of_one_provider else "",
        *_asked(role),
        role.same_subtree,
        role.isolate,
        tuple((one.name, one.beside, *_asked(one)) for one in role.groups),
    )


def _asked(part: Role | Group) -> tuple[object, ...]:
    return frozenset(part.resources.items()), part.required, part.forbidden, part.member_of
