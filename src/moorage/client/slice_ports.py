"""Makes the Neutron ports of the slices on a server, attaches them, and reports the slices.

Each round compares what there is: the slices that the service shows, and the ports that carry the
server's and the claim's id. So it may end anywhere, and the next one goes on: no port is made twice
or left.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moorage.client.errors import (
    Busy,
    Conflict,
    NotFound,
    ServerFault,
    Unreachable,
)
from moorage.client.neutron import Neutron
from moorage.client.placement_wire import SourceFailed
from moorage.client.service_types import NETWORK
from moorage.domain.errors import MoorageError, WrongState
from moorage.domain.retry_policy import Retries, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.client.moorage import Moorage
    from moorage.client.neutron import Port, Trunk
    from moorage.client.nova import Nova
    from moorage.wire.server_providers import Slice

VNIC_SLICE: Final = "CUSTOM_VNIC_SLICE"
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME: Final = re.compile(r"slice-([0-9a-f-]{36})-(\d{1,9})")
_VLANS: Final = range(1, 4095)
_REFUSED_PORT: Final = frozenset({400, 404, 409})
"""Answers after which Neutron makes no such port: no network, no address left, or over a quota."""
_REFUSED_ATTACHMENT: Final = frozenset({400, 404})
"""Of Nova and of trunks: 409 is a server or trunk that is busy, or shelved."""
_PASSING: Final = (Unreachable, Busy, ServerFault, SourceFailed)
_TRIES: Final = RetryPolicy(first_pause=1.0, longest_pause=10.0, limit=60.0)
_REASON: Final = 1024


class PortState(StrEnum):
    """What became of a slice, or of a port."""

    ACTIVE = "active"
    """The slice has its ports, and is reported."""
    FAILED = "failed"
    """It cannot have them, and is reported."""
    REMOVED = "removed"
    """A port is detached and deleted, since no slice has it any more."""
    WAITING = "waiting"
    """Not done yet; it is tried again."""


@dataclass(frozen=True, slots=True)
class PortOutcome:
    """What became of a slice, or of the port of one that is over."""

    slice: str
    """The id of its claim; "-": of the round as a whole."""
    state: PortState
    ports: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class PortOrder:
    """Whose ports are made, and where."""

    server_id: str
    network: str
    """Its name or id."""
    trunk: str | None = None
    """The name or id of the server's trunk: ports become sub-ports; None: interfaces."""
    resource_class: str = VNIC_SLICE
    """A slice has as many ports as it takes of it."""

    @property
    def mark(self) -> str:
        """The description of all its ports."""
        return f"Moorage: {self.resource_class} of server {self.server_id}"


@dataclass(frozen=True, slots=True)
class PortTiming:
    """Pauses in seconds, and how often is tried again."""

    watch: float = 5.0
    """Between two rounds while nothing is left to do."""
    poll: float = 0.5
    """Between two looks at a port that Nova detaches."""
    detach: float = 60.0
    """For how long Nova may detach a port."""
    tries: RetryPolicy = _TRIES
    sleep: Callable[[float], object] = time.sleep


@dataclass(frozen=True, slots=True)
class SortedPorts:
    """The ports of a server's slices."""

    building: Mapping[str, Mapping[int, Port]]
    """Claim -> the ports that its slice has already, by their number."""
    surplus: tuple[Port, ...]
    """Those of no slice."""


def sort_ports(
    ports: Iterable[Port],
    slices: Sequence[Slice],
    attached: frozenset[str],
    resource_class: str = VNIC_SLICE,
) -> SortedPorts:
    """Which ports belong to slices that are being made, and which to none any more.

    A port's name has the claim and a number. Of several with the same the one of an active slice is
    kept, else one that is attached. The ports of an active slice are those of the claim whose first
    port has the slice's id. Ports with other names are left alone.
    """
    active = {one.slice_id: one for one in slices if one.status == "active"}
    building = {one.id: one for one in slices if one.status == "building"}
    groups: dict[str, dict[int, list[Port]]] = defaultdict(lambda: defaultdict(list))
    for port in ports:
        if named := _NAME.fullmatch(port.name):
            groups[named[1]][int(named[2])].append(port)
    kept: dict[str, Mapping[int, Port]] = {}
    surplus: list[Port] = []
    for claim, numbered in groups.items():
        for same in numbered.values():
            same.sort(key=lambda one: (one.id not in active, one.id not in attached, one.id))
        first = numbered[0][0].id if 0 in numbered else None
        found = building.get(claim) or active.get(first)
        units = 0 if found is None else found.resources.get(resource_class, 0)
        if claim in building:
            kept[claim] = {number: same[0] for number, same in numbered.items() if number < units}
        for number, same in numbered.items():
            surplus += same[1:] if number < units else same
    return SortedPorts(kept, tuple(surplus))


class SlicePorts:
    """The ports of the slices on one server."""

    def __init__(
        self, moorage: Moorage, nova: Nova, order: PortOrder, timing: PortTiming = PortTiming()
    ) -> None:
        """Finds the network and the trunk.

        Raises:
            Missing, Ambiguous: there is no network or trunk of the name, or there are several.
            WrongState: the trunk is another server's.
            NoEndpoint: nothing says where Neutron is.
            SourceFailed, Unreachable, LoginRefused: Neutron cannot be asked, or there is no network
                of the id.
        """
        self._moorage, self._nova, self._order, self._timing = moorage, nova, order, timing
        self._neutron = Neutron(nova.connection(NETWORK))
        self._network = nova.network_id(order.network)
        self._neutron.check_network(self._network)
        self._trunk = None if order.trunk is None else self._own_trunk(order.trunk)

    def _own_trunk(self, text: str) -> str:
        trunk = self._neutron.trunk(text)
        parent = self._neutron.port(trunk.port_id)
        if parent is None or parent.device_id != self._order.server_id:
            raise WrongState(f"trunk {text} is not attached to server {self._order.server_id}")
        return trunk.id

    def once(self) -> Iterator[PortOutcome]:
        """Do what is to be done; what waits is tried again, for a minute.

        Raises:
            NotFound: the server offers nothing, and has no ports of slices.
            Forbidden, LoginRefused, UnknownAnswer: as the service and Keystone answer.
        """
        retries = Retries()
        while True:
            waiting, again = [], False
            for one in self.round():
                if one.state is PortState.WAITING:
                    waiting.append(one)
                else:
                    yield one
                again |= one.state in {PortState.WAITING, PortState.FAILED}
            pause = retries.next_pause(self._timing.tries, time.monotonic()) if again else None
            if pause is None:
                yield from waiting
                return
            self._timing.sleep(pause)

    def watch(self) -> Iterator[PortOutcome]:
        """Do so for ever; what waits is said again only once it changes. Raises as `once`."""
        said: frozenset[PortOutcome] = frozenset()
        while True:
            outcomes = []
            for one in self.round():
                outcomes.append(one)
                if one not in said:
                    yield one
            said = frozenset(one for one in outcomes if one.state is PortState.WAITING)
            self._timing.sleep(self._timing.watch)

    def round(self) -> Iterator[PortOutcome]:
        """Read what there is, remove ports of no slice, and make those that lack. As `once`."""
        try:
            # Before the slices: every port that is read was made for a claim that is older.
            ports = self._neutron.ports(self._order.mark)
            trunks = self._neutron.trunks() if ports else []
            slices = self._slices(ports)
        except _PASSING as error:
            yield PortOutcome("-", PortState.WAITING, message=error.message)
            return
        on_trunk = {one.port_id: trunk for trunk in trunks for one in trunk.sub_ports}
        attached = frozenset(on_trunk).union(one.id for one in ports if one.device_id)
        found = sort_ports(ports, slices, attached, self._order.resource_class)
        for port in found.surplus:
            yield self._removed(port, on_trunk.get(port.id))
        for one in slices:
            if one.status == "building" and one.resources.get(self._order.resource_class):
                yield self._made(one, found.building.get(one.id, {}), attached)

    def _slices(self, ports: Sequence[Port]) -> list[Slice]:
        try:
            return self._moorage.server_providers.slices(self._order.server_id).value
        except NotFound:
            if not ports:
                raise
            return []  # the server provider has ended, and its slices with it

    def _made(self, one: Slice, there: Mapping[int, Port], attached: frozenset[str]) -> PortOutcome:
        """Make the ports of a slice that lack, attach them, and report it."""
        ports = dict(there)
        try:
            for number in range(one.resources[self._order.resource_class]):
                if number not in ports:
                    ports[number] = self._created(f"slice-{one.id}-{number}")
                if ports[number].id not in attached:
                    self._attach(ports[number].id)
            ids = tuple(ports[number].id for number in sorted(ports))
            self._report(one.id, status="active", slice_id=ids[0])
        except _Refused as error:
            return self._failed(one.id, error.message)
        except (*_PASSING, Conflict, NotFound) as error:
            # Of the service: the slice has lapsed, or was reported otherwise, which is read next.
            return PortOutcome(one.id, PortState.WAITING, message=error.message)
        return PortOutcome(one.id, PortState.ACTIVE, ids)

    def _created(self, name: str) -> Port:
        try:
            return self._neutron.create_port(self._network, name, self._order.mark)
        except SourceFailed as error:
            raise _refused("made", error, _REFUSED_PORT) from error

    def _attach(self, port_id: str) -> None:
        try:
            if self._trunk is None:
                self._nova.attach(self._order.server_id, port_id)
            else:
                trunk = self._neutron.trunk(self._trunk)
                used = {one.segmentation_id for one in trunk.sub_ports}
                vlan = next((one for one in _VLANS if one not in used), None)
                if vlan is None:
                    raise _Refused("no VLAN is free on the trunk")
                self._neutron.add_sub_port(trunk.id, port_id, vlan)
        except SourceFailed as error:
            raise _refused("attached", error, _REFUSED_ATTACHMENT) from error

    def _failed(self, claim: str, reason: str) -> PortOutcome:
        """Report a slice that cannot have its ports; the next round removes those that it has.

        Another project reads the reason: no ids of servers and networks are in it.
        """
        try:
            self._report(claim, status="failed", reason=_ID.sub("...", reason)[:_REASON])
        except (*_PASSING, Conflict, NotFound) as error:
            return PortOutcome(claim, PortState.WAITING, message=error.message)
        return PortOutcome(claim, PortState.FAILED, message=reason)

    def _report(self, claim: str, **change: object) -> None:
        self._moorage.server_providers.report(self._order.server_id, claim, change)

    def _removed(self, port: Port, trunk: Trunk | None) -> PortOutcome:
        """Detach a port, and delete it."""
        named = _NAME.fullmatch(port.name)
        claim = "-" if named is None else named[1]
        try:
            if trunk is not None:
                self._neutron.remove_sub_port(trunk.id, port.id)
            elif port.device_id:
                self._nova.detach(port.device_id, port.id)
                self._await_detached(port.id)
            self._neutron.delete_port(port.id)
        except _PASSING as error:
            return PortOutcome(claim, PortState.WAITING, (port.id,), error.message)
        return PortOutcome(claim, PortState.REMOVED, (port.id,))

    def _await_detached(self, port_id: str) -> None:
        """Wait until Nova has detached a port: while it is attached a tenant may not delete it."""
        until = time.monotonic() + self._timing.detach
        while (port := self._neutron.port(port_id)) is not None and port.device_id:
            if time.monotonic() > until:
                raise SourceFailed(f"Nova does not detach port {port_id}")
            self._timing.sleep(self._timing.poll)


class _Refused(MoorageError):
    """The ports of a slice cannot be made or attached; the message says why."""


def _refused(verb: str, error: SourceFailed, final: frozenset[int]) -> MoorageError:
    if error.status not in final:
        return error
    return _Refused(f"its port cannot be {verb}: {error.detail}")
