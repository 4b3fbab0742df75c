"""The providers of devices: network functions, GPUs, FPGAs, disks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import NO_CELL, Caution
from moorage.agent.target import ROOT, TargetInventory, TargetProvider
from moorage.domain.agent_config import name_part
from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.agent.facts import Disk, FpgaRegion, Interface, MediatedType, Node, PciFunction
    from moorage.domain.agent_config import AgentConfig, NetworkRule
    from moorage.domain.resources import ResourceClass

_NETWORK: Final = 0x02
_DISPLAYS: Final = frozenset({0x0300, 0x0302, 0x0380})
_ACCELERATOR: Final = 0x1200
_GPU_MAKERS: Final = frozenset({"10de", "1002", "8086"})
"""NVIDIA, AMD, Intel. The displays of others are those of management controllers."""
_ACCELERATED_GPU_MAKERS: Final = frozenset({"10de", "1002"})
"""Whose accelerators are GPUs, too."""
_FPGA_MAKERS: Final = frozenset({"10ee", "1172"})
_KILOBITS: Final = 1000


def function_providers(
    node: Node, config: AgentConfig, cautions: list[Caution]
) -> Iterator[TargetProvider]:
    """The providers of PCI functions, by address."""
    regions: dict[str, list[FpgaRegion]] = {}
    for region in node.regions:
        regions.setdefault(region.address, []).append(region)
    interfaces: dict[str, list[Interface]] = {}
    for interface in node.interfaces:
        interfaces.setdefault(interface.address, []).append(interface)
    mediated: dict[str, list[MediatedType]] = {}
    for one in node.mediated:
        mediated.setdefault(one.address, []).append(one)
    for function in node.functions:
        address = function.address
        if any(fnmatchcase(address, pattern) for pattern in config.ignore):
            continue
        if address in regions or _is_fpga(function):
            yield from _fpga(function, regions.get(address, ()))
        elif _is_gpu(function):
            yield _gpu(function, mediated.get(address, ()), config, cautions)
        else:
            own = interfaces.get(address, ())
            provider = _virtual_functions(function, own, config, cautions)
            if provider is not None:
                yield provider


def disk_providers(
    disks: Sequence[Disk], config: AgentConfig, cautions: list[Caution]
) -> Iterator[TargetProvider]:
    """The providers of disks that the configuration offers whole."""
    for disk in disks:
        rule = next((one for one in config.disks if fnmatchcase(disk.name, one.name)), None)
        if rule is None:
            continue
        if disk.mounted or disk.removable:
            why = "the node itself uses it" if disk.mounted else "it is removable"
            cautions.append(Caution("not-offered", f"disk {disk.name}", why))
            continue
        yield TargetProvider(
            f"disk:{disk.name}",
            _parent(disk.cell),
            _totals({rule.resource_class: 1}, config),
            rule.traits,
        )


def _parent(cell: int) -> str:
    return ROOT if cell == NO_CELL else f"numa{cell}"


def _totals(
    amounts: Mapping[ResourceClass, int], config: AgentConfig
) -> Mapping[ResourceClass, TargetInventory]:
    return MappingProxyType(
        {
            name: TargetInventory(total, None, config.allocation_ratio.get(name))
            for name, total in amounts.items()
            if total > 0
        }
    )


def _model(function: PciFunction) -> str:
    return f"CUSTOM_PCI_{function.vendor}_{function.device}".upper()


# --- FPGAs ----------------------------------------------------------------------------------------


def _is_fpga(function: PciFunction) -> bool:
    return function.class_code >> 8 == _ACCELERATOR and function.vendor in _FPGA_MAKERS


def _fpga(function: PciFunction, regions: Sequence[FpgaRegion]) -> Iterator[TargetProvider]:
    """One provider for each region, or one for a card that shows none.

    Regions are counted within their card: the kernel's numbers change when a card is added.
    """
    unit = MappingProxyType({"FPGA": TargetInventory(1)})
    if not regions:
        key = f"fpga:{function.address}"
        traits = frozenset({_model(function)})
        yield TargetProvider(key, _parent(function.cell), unit, traits, function.address)
    for number, region in enumerate(regions):
        interface = (
            {f"CUSTOM_FPGA_INTERFACE_{region.interface}".upper()} if region.interface else ()
        )
        yield TargetProvider(
            f"fpga:{function.address}:{number}",
            _parent(function.cell),
            unit,
            frozenset({_model(function), *interface}),
            function.address,
        )


# --- GPUs -----------------------------------------------------------------------------------------


def _is_gpu(function: PciFunction) -> bool:
    kind = function.class_code >> 8
    if function.boot_display:
        return False
    if kind == _ACCELERATOR:
        return function.vendor in _ACCELERATED_GPU_MAKERS
    return kind in _DISPLAYS and function.vendor in _GPU_MAKERS


def _gpu(
    function: PciFunction,
    types: Sequence[MediatedType],
    config: AgentConfig,
    cautions: list[Caution],
) -> TargetProvider:
    """The whole GPU as one unit, or its virtual ones where its driver offers these."""
    amounts = {"PGPU": 1}
    traits = {_model(function)}
    if types:
        by_name = {one.name: one for one in types}
        chosen = next((by_name[one] for one in config.mediated_types if one in by_name), None)
        if chosen is None and len(types) == 1:
            chosen = types[0]
        if chosen is None:
            known = ", ".join(sorted(by_name)[:5])
            said = f"of several types none is chosen by `mediated_types`: {known}"
            cautions.append(Caution("ambiguous-types", f"gpu {function.address}", said))
            amounts = {}
        else:
            amounts = {"VGPU": min(chosen.available + chosen.existing, MAX_AMOUNT)}
            traits.add(f"CUSTOM_VGPU_{name_part(chosen.label or chosen.name)}")
    return TargetProvider(
        f"gpu:{function.address}",
        _parent(function.cell),
        _totals(amounts, config),
        frozenset(traits),
        function.address,
    )


# --- functions with virtual functions -------------------------------------------------------------


def _virtual_functions(
    function: PciFunction,
    interfaces: Sequence[Interface],
    config: AgentConfig,
    cautions: list[Caution],
) -> TargetProvider | None:
    """The provider of a function's virtual functions and bandwidth; None if it offers neither."""
    key = f"pf:{function.address}"
    parent = _parent(function.cell)
    if function.vfs is None or function.total_vfs is None:
        return TargetProvider(key, parent, address=function.address, unsure=True)
    if function.vfs > function.total_vfs:
        said = f"{function.vfs} virtual functions of {function.total_vfs}; what is known stays"
        cautions.append(Caution("out-of-bounds", f"pf {function.address}", said))
        return TargetProvider(key, parent, address=function.address, unsure=True)
    if function.class_code >> 16 != _NETWORK:
        if not function.vfs:
            return None
        name = f"CUSTOM_PCI_{function.vendor}_{function.vf_device or function.device}".upper()
        stock = _totals({name: function.vfs}, config)
        return TargetProvider(key, parent, stock, frozenset({_model(function)}), function.address)
    names = frozenset(one.name for one in interfaces)
    rule = next((one for one in config.networks if one.fits(function.address, names)), None)
    bandwidth = _bandwidth(function, interfaces, rule, cautions)
    amounts = {"SRIOV_NET_VF": function.vfs, **bandwidth}
    if not any(amounts.values()):
        return None
    return TargetProvider(
        key,
        parent,
        _totals(amounts, config),
        frozenset({_model(function), *_network_traits(function, interfaces, rule)}),
        function.address,
    )


def _network_traits(
    function: PciFunction, interfaces: Sequence[Interface], rule: NetworkRule | None
) -> Iterator[str]:
    if function.vfs:
        yield "HW_NIC_SRIOV"
    if any(one.switch_id for one in interfaces):
        yield "HW_NIC_OFFLOAD_SWITCHDEV"
    if rule is not None:
        yield from rule.traits
        if rule.physnet is not None:
            yield f"CUSTOM_PHYSNET_{name_part(rule.physnet)}"


def _bandwidth(
    function: PciFunction,
    interfaces: Sequence[Interface],
    rule: NetworkRule | None,
    cautions: list[Caution],
) -> Mapping[ResourceClass, int]:
    if rule is None or rule.bandwidth is None:
        return {}
    link = max((one.megabits or 0 for one in interfaces), default=0) * _KILOBITS
    egress, ingress = (rule.bandwidth.egress or link, rule.bandwidth.ingress or link)
    if not egress or not ingress:
        said = "the speed of the link is unknown at present; its bandwidth is not reported"
        cautions.append(Caution("no-link", f"pf {function.address}", said))
        return {}
    return {"NET_BW_EGR_KILOBIT_PER_SEC": egress, "NET_BW_IGR_KILOBIT_PER_SEC": ingress}
