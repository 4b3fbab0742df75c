"""The request groups by which Nova asks Placement for a server: the one translation of flavors."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.describe_groups import MAX_GROUPS
from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.cpu_policies import HYPERTHREADING, cpu_demand
from moorage.domain.nova.extra_specs import GROUP_KEY, check_extra_specs
from moorage.domain.nova.hypervisor_features import ENCRYPTION_SLOT, feature_demand
from moorage.domain.nova.image_properties import (
    COMPARED,
    prefiltered_traits,
    read_image,
    required_traits,
)
from moorage.domain.nova.pci_devices import StandardNames
from moorage.domain.nova.properties import Hardware, Properties
from moorage.domain.request_groups import Group, GroupKind
from moorage.domain.resources import amounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.nova.cpu_policies import CpuDemand
    from moorage.domain.nova.hypervisor_features import FeatureDemand
    from moorage.domain.nova.pci_devices import PciAlias
    from moorage.domain.nova_servers import NovaServer
    from moorage.domain.resources import Amounts, ResourceClass, Trait

_ALIAS: Final = "pci_passthrough:alias"
_POLICY: Final = "group_policy"
_OWN: Final = ""
"""The suffix of the server's own resources: none."""


@dataclass(frozen=True, slots=True)
class NovaRules:
    """How this cloud's Nova is configured, as far as its requests to Placement differ by it."""

    aliases: Mapping[str, PciAlias] = field(default_factory=lambda: MappingProxyType({}))
    """`[pci] alias`, by name."""
    pci_in_placement: bool = False
    """`[filter_scheduler] pci_in_placement`: whether devices are asked of Placement."""
    image_metadata_prefilter: bool = False
    """`[scheduler] image_metadata_prefilter`."""
    image_type_support: bool = False
    """`[scheduler] query_placement_for_image_type_support`."""
    standard: StandardNames = field(default_factory=StandardNames)


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """What Nova asks of Placement for a server, beside the groups of its ports."""

    resources: Amounts
    """Its own, each class from one provider of the host's tree."""
    required: tuple[frozenset[Trait], ...] = ()
    """All of these; each satisfied by any trait of its set."""
    forbidden: frozenset[Trait] = frozenset()
    root_required: frozenset[Trait] = frozenset()
    """Traits of the host itself."""
    groups: tuple[Group, ...] = ()
    """Numbered groups of the flavor, and one for each device; named by their suffixes."""
    isolate: bool = False
    """Whether no provider may serve two groups."""
    host_checks: tuple[str, ...] = ()
    """Extra specs and image properties that Nova compares with the chosen host itself: they are
    not part of the request."""


def translate(
    server: NovaServer,
    rules: NovaRules,
    *,
    others: tuple[Group, ...] = (),
    specs_path: str = "extra_specs",
    image_path: str = "image_properties",
) -> ServerRequest:
    """The request for a server.

    Args:
        server: the server.
        rules: how Nova is configured.
        others: the groups of its ports, and others that are not the flavor's.
        specs_path: where errors say that the flavor's extra specs stand.
        image_path: where errors say that the image's properties stand.

    Raises:
        InvalidDescription: an extra spec or image property that is not known or has a wrong value,
            ones that contradict each other, or a request that Placement would refuse.
    """
    specs = Properties(server.extra_specs, specs_path)
    check_extra_specs(specs)
    hardware = Hardware(specs, read_image(server.image_properties, image_path))
    return _Translation(server, rules, hardware, others).request()


@dataclass(slots=True)
class _OpenGroup:
    """A group to which amounts and traits are still added."""

    resources: dict[ResourceClass, int] = field(default_factory=dict)
    required: set[Trait] = field(default_factory=set)
    forbidden: set[Trait] = field(default_factory=set)


@dataclass(slots=True)
class _Translation:
    server: NovaServer
    rules: NovaRules
    hardware: Hardware
    others: tuple[Group, ...]
    groups: dict[str, _OpenGroup] = field(default_factory=lambda: {_OWN: _OpenGroup()})

    @property
    def own(self) -> _OpenGroup:
        return self.groups[_OWN]

    def request(self) -> ServerRequest:
        specs, image = self.hardware.flavor, self.hardware.image
        self._add_extra_specs(specs)
        self.own.required |= set(required_traits(image))
        cpu = cpu_demand(self.server.size, self.hardware)
        self._add_processors(cpu)
        devices, device_checks = self._devices(specs)
        self._add_sizes(devices)
        features = feature_demand(self.hardware)
        self._add_features(features, specs)
        groups = (*self._closed_groups(specs), *devices)
        if len(groups) > MAX_GROUPS:
            raise InvalidDescription(
                f"a flavor has at most {MAX_GROUPS} groups and devices, not {len(groups)}",
                path=specs.path,
            )
        self._check_group_policy(specs, groups)
        own = self.own
        self._check_group(specs, _OWN, own)
        if not own.resources and not groups and not self.others:
            raise InvalidDescription("a flavor without any resource", path=specs.path)
        return ServerRequest(
            resources=amounts(own.resources, path=specs.path),
            required=each_required(own.required),
            forbidden=frozenset(own.forbidden),
            root_required=features.root_traits | self._prefiltered(image),
            groups=groups,
            isolate=specs.get(_POLICY) == "isolate",
            host_checks=(*cpu.host_checks, *device_checks, *_compared(self.hardware)),
        )

    def _add_extra_specs(self, specs: Properties) -> None:
        for key, value in specs.values.items():
            match = GROUP_KEY.fullmatch(key)
            if match is None:
                continue
            kind, suffix, name = match.groups()
            group = self.groups.setdefault(suffix or _OWN, _OpenGroup())
            if kind == "resources":
                group.resources[name] = int(value)
            else:
                (group.required if value == "required" else group.forbidden).add(name)

    def _check_group_policy(self, specs: Properties, groups: tuple[Group, ...]) -> None:
        """Placement refuses several groups without a policy.

        Nova adds one, unless the flavor has several numbered groups.
        """
        suffixes = sorted(suffix for suffix in self.groups if suffix != _OWN)
        several = len(groups) + len(self.others) > 1
        if len(suffixes) > 1 and several and specs.get(_POLICY) is None:
            raise specs.refusal(_POLICY, f"groups {', '.join(suffixes)} need one: none or isolate")

    def _add_processors(self, cpu: CpuDemand) -> None:
        for name, amount in (("VCPU", cpu.vcpus), ("PCPU", cpu.pcpus)):
            if amount is not None:
                self.own.resources[name] = amount
        if cpu.hyperthreading is not None:
            required = cpu.hyperthreading == "required"
            (self.own.required if required else self.own.forbidden).add(HYPERTHREADING)

    def _add_sizes(self, devices: tuple[Group, ...]) -> None:
        """Add the flavor's numbers of classes that nothing else asks for."""
        asked = {name for group in self.groups.values() for name in group.resources}
        asked |= {name for group in (*devices, *self.others) for name in group.resources}
        size = self.server.size
        if not asked & {"VCPU", "PCPU"}:
            self.own.resources["VCPU"] = size.vcpus
        if "MEMORY_MB" not in asked:
            self.own.resources["MEMORY_MB"] = size.memory_mb
        if "DISK_GB" not in asked:
            self.own.resources["DISK_GB"] = size.disk_gb(from_volume=self.server.from_volume)

    def _add_features(self, features: FeatureDemand, specs: Properties) -> None:
        self.own.required |= features.traits
        if features.encrypted:
            self.own.resources[ENCRYPTION_SLOT] = 1
        labels = Counter(filter(None, map(str.strip, (specs.get("hw:pmem") or "").split(","))))
        for label, amount in labels.items():
            name = re.sub("[^0-9A-Za-z]+", "_", f"PMEM_NAMESPACE_{label}").upper()
            self.own.resources[f"CUSTOM_{name}"] = amount

    def _prefiltered(self, image: Properties) -> frozenset[Trait]:
        """The traits of the host that request filters of Nova's scheduler add, if configured."""
        found: set[Trait] = set()
        standard = self.rules.standard.traits
        if self.rules.image_metadata_prefilter:
            traits = prefiltered_traits(image)
            if standard.issuperset(traits):  # otherwise the filter adds none of them
                found.update(traits)
        form = image.get("disk_format")
        if self.rules.image_type_support and form is not None and not self.server.from_volume:
            found.update(standard & {f"COMPUTE_IMAGE_TYPE_{form.upper()}"})
        return frozenset(found)

    def _devices(self, specs: Properties) -> tuple[tuple[Group, ...], tuple[str, ...]]:
        """A group for each PCI device; and the key if Nova alone knows the devices."""
        text = specs.get(_ALIAS)
        if text is None:
            return (), ()
        found: list[Group] = []
        for number, part in enumerate(text.split(",")):
            name, _, count = part.partition(":")
            alias = self.rules.aliases.get(name.strip())
            if alias is None:
                raise specs.refusal(
                    _ALIAS, f"{name.strip()!r} is not in the table of aliases (setting pci_alias)"
                )
            if self.rules.pci_in_placement:
                found += self._device_groups(specs, alias, number, int(count))
        if not self.rules.pci_in_placement:
            return (), (_ALIAS,)
        return tuple(found), ()

    def _device_groups(
        self, specs: Properties, alias: PciAlias, number: int, count: int
    ) -> Iterator[Group]:
        if alias.resource_class is None:
            raise specs.refusal(
                _ALIAS, f"{alias.name!r} has no single resource class in the table of aliases"
            )
        if count > MAX_GROUPS:
            raise specs.refusal(_ALIAS, f"at most {MAX_GROUPS} devices, not {count}")
        for index in range(count):
            yield Group(
                name=f"pci-{number}-{index}",
                resources=amounts({alias.resource_class: 1}, path=specs.path),
                kind=GroupKind.FLAVOR,
                required=each_required(alias.traits),
            )

    def _closed_groups(self, specs: Properties) -> Iterator[Group]:
        """The numbered groups, without amounts of zero and without empty groups."""
        for suffix, group in self.groups.items():
            group.resources = {name: amount for name, amount in group.resources.items() if amount}
            if suffix == _OWN or not (group.resources or group.required or group.forbidden):
                continue
            self._check_group(specs, suffix, group)
            yield Group(
                name=suffix,
                resources=amounts(group.resources, path=specs.path),
                kind=GroupKind.FLAVOR,
                required=each_required(group.required),
                forbidden=frozenset(group.forbidden),
            )

    def _check_group(self, specs: Properties, suffix: str, group: _OpenGroup) -> None:
        """Check what Placement refuses: traits without amounts, or required and forbidden."""
        for trait in sorted(group.required & group.forbidden):
            raise specs.refusal(f"trait{suffix}:{trait}", "it is both required and forbidden")
        for trait in sorted(group.required | group.forbidden):
            if not group.resources:
                raise specs.refusal(
                    f"trait{suffix}:{trait}", "no amount is asked of the provider that has it"
                )


def each_required(traits: frozenset[Trait] | set[Trait]) -> tuple[frozenset[Trait], ...]:
    """Traits of which every one is required, in the form of groups."""
    return tuple(frozenset({one}) for one in sorted(traits))


_COMPARED_SPECS: Final = ("hw:maxphysaddr_bits", "vmware:hw_version", "vmware:storage_policy")


def _compared(hardware: Hardware) -> Iterator[str]:
    """Keys that filters of Nova's scheduler compare with hosts, or that hosts can fail at."""
    yield from (key for key in _COMPARED_SPECS if hardware.flavor.get(key) is not None)
    yield from (key for key in COMPARED if hardware.image.get(key) is not None)
