"""Flavors between Nova's terms and Placement's, and the request of a server with a flavor."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.flavors import Flavor
from moorage.domain.nova.cpu_policies import DEDICATED, HYPERTHREADING, MIXED
from moorage.domain.nova.extra_specs import GROUP_KEY, check_extra_specs, decides
from moorage.domain.nova.properties import Properties
from moorage.domain.nova.server_request import NovaRules, ServerRequest, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.request_groups import Group
    from moorage.domain.resources import Amounts, Trait


def nova_flavor(
    flavor_id: str,
    name: str,
    size: FlavorSize,
    extra_specs: Mapping[str, str],
    rules: NovaRules,
    path: str,
) -> Flavor:
    """A flavor of Nova.

    Raises:
        InvalidDescription: an extra spec is unknown, malformed or contradicts another one; `path`
            is where errors say that they stand.
    """
    specs = MappingProxyType(dict(sorted(extra_specs.items())))
    asked = translate(NovaServer(size, specs), rules, specs_path=path)
    return Flavor(
        id=flavor_id,
        name=name,
        resources=asked.resources,
        required=asked.required,
        forbidden=asked.forbidden,
        extra_specs=specs,
        size=size,
        root_required=asked.root_required,
        groups=asked.groups,
        isolate=asked.isolate,
        host_checks=asked.host_checks,
    )


def check_placement_terms(specs: Mapping[str, str], path: str) -> None:
    """Check the extra specs of a flavor that is written in Placement's terms.

    Raises:
        InvalidDescription: one that is unknown or malformed, or that decides a place: the flavor's
            numbers would be needed to say how.
    """
    given = Properties(specs, path)
    for key in sorted(specs):
        if GROUP_KEY.fullmatch(key) is not None:
            raise given.refusal(key, "write it among the flavor's resources, required or forbidden")
    check_extra_specs(given)
    for key, value in sorted(specs.items()):
        if decides(key) and (key, value.lower()) not in _NEUTRAL:
            raise given.refusal(
                key, "it needs a flavor with Nova's numbers: vcpus, ram and disk, not resources"
            )


_NEUTRAL = frozenset(
    {
        ("hw:cpu_policy", "shared"),
        ("hw:cpu_realtime", "false"),
        ("hw:cpu_realtime", "no"),
        ("hw:cpu_thread_policy", "prefer"),
        ("hw:emulator_threads_policy", "share"),
        ("hw:ephemeral_encryption", "false"),
        ("hw:locked_memory", "false"),
        ("hw:mem_encryption", "false"),
        ("hw:virtio_packed_ring", "false"),
        ("os:secure_boot", "disabled"),
        ("os:secure_boot", "optional"),
    }
)
"""Extra specs that would decide with another value."""


def server_of(
    flavor: Flavor,
    image_properties: Mapping[str, str] | None = None,
    *,
    from_volume: bool = False,
) -> NovaServer:
    """The server that Nova is asked to create with a flavor and an image."""
    size, specs = flavor.size, flavor.extra_specs
    if size is None:
        size, specs = novas_terms(flavor.resources, flavor.required, flavor.forbidden, specs)
    return NovaServer(size, specs, image_properties, from_volume)


def server_request(
    flavor: Flavor,
    server: NovaServer,
    rules: NovaRules,
    *,
    others: tuple[Group, ...] = (),
    path: str,
    image_path: str,
) -> ServerRequest:
    """The request of a server with this flavor.

    Args:
        flavor: the flavor.
        server: the server, as `server_of` makes it of the flavor.
        rules: how Nova is configured.
        others: the groups of its ports, and others that are not the flavor's.
        path: where errors say that the flavor is named.
        image_path: where errors say that the image's properties stand.

    Raises:
        InvalidDescription: see `translate`.
    """
    if flavor.size is not None:
        return translate(server, rules, others=others, specs_path=path, image_path=image_path)
    check_placement_terms(flavor.extra_specs, path)
    if server.image_properties is None and not server.from_volume:
        return ServerRequest(flavor.resources, flavor.required, flavor.forbidden)
    asked = translate(server, rules, others=others, specs_path=path, image_path=image_path)
    if not (asked.resources or asked.groups or others):
        raise InvalidDescription("nothing is left to place on a host", path=path)
    required = dict.fromkeys((*flavor.required, *asked.required))
    return replace(asked, required=tuple(required))


def request_without_devices(
    flavor: Flavor,
    image_properties: Mapping[str, str] | None,
    *,
    from_volume: bool,
    others: tuple[Group, ...] = (),
) -> ServerRequest:
    """The request without PCI devices: as far as it depends on no option of Nova's.

    Raises:
        InvalidDescription: the flavor and the image contradict each other.
    """
    server = server_of(flavor, image_properties, from_volume=from_volume)
    specs = {key: one for key, one in server.extra_specs.items() if key != _DEVICES}
    return server_request(
        flavor,
        replace(server, extra_specs=specs),
        NovaRules(),
        others=others,
        path="flavor",
        image_path="image_properties",
    )


_DEVICES: Final = "pci_passthrough:alias"
"""The extra spec whose meaning depends on the operator's table of aliases."""


def novas_terms(
    resources: Amounts,
    required: Iterable[frozenset[Trait]],
    forbidden: Iterable[Trait],
    extra_specs: Mapping[str, str],
) -> tuple[FlavorSize, Mapping[str, str]]:
    """The numbers and extra specs by which a flavor of Nova asks for amounts and traits.

    DISK_GB is the root disk, as far as it is known. What a flavor cannot say (one of several
    traits) is left out.
    """
    amounts, specs = dict(resources), dict(extra_specs)
    shared, dedicated = amounts.pop("VCPU", 0), amounts.pop("PCPU", 0)
    memory, disk = amounts.pop("MEMORY_MB", 0), amounts.pop("DISK_GB", 0)
    if shared and dedicated:
        specs["hw:cpu_policy"] = MIXED
        specs["hw:cpu_dedicated_mask"] = f"0-{dedicated - 1}"
    elif dedicated:
        specs["hw:cpu_policy"] = DEDICATED
    # Nova requires at least one of each, and asks Placement for as many unless told otherwise.
    for name, amount in (("VCPU", shared + dedicated), ("MEMORY_MB", memory)):
        if not amount:
            specs[f"resources:{name}"] = "0"
    specs |= {f"resources:{name}": str(amount) for name, amount in amounts.items()}
    specs |= trait_specs("trait", required, forbidden, specs)
    size = FlavorSize(max(shared + dedicated, 1), max(memory, 1), disk)
    return size, MappingProxyType(dict(sorted(specs.items())))


def trait_specs(
    key: str,
    required: Iterable[frozenset[Trait]],
    forbidden: Iterable[Trait],
    extra_specs: Mapping[str, str],
) -> Mapping[str, str]:
    """The extra specs that state traits, beside other extra specs.

    The trait of hardware threads is left out where a policy states it: Nova refuses both.
    """
    said = {HYPERTHREADING} if "hw:cpu_thread_policy" in extra_specs else set()
    singles = {trait for some in required if len(some) == 1 for trait in some}
    return {
        **{f"{key}:{trait}": "required" for trait in sorted(singles - said)},
        **{f"{key}:{trait}": "forbidden" for trait in sorted(set(forbidden) - said)},
    }
