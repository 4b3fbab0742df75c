"""A server as Nova is asked to create it: its flavor's numbers and extra specs, and its image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

_MIB_PER_GIB: Final = 1024


@dataclass(frozen=True, slots=True)
class FlavorSize:
    """The numbers of a flavor of Nova."""

    vcpus: int
    memory_mb: int
    """In MiB."""
    root_gb: int = 0
    """In GiB, as is `ephemeral_gb`."""
    ephemeral_gb: int = 0
    swap_mb: int = 0
    """In MiB."""

    def disk_gb(self, *, from_volume: bool) -> int:
        """What Nova asks for as DISK_GB, in GiB; a root disk on a volume is not on the host."""
        swap = -(-self.swap_mb // _MIB_PER_GIB)
        return self.ephemeral_gb + swap + (0 if from_volume else self.root_gb)


@dataclass(frozen=True, slots=True)
class NovaServer:
    """What a server's request to Placement follows from, except its ports."""

    size: FlavorSize
    extra_specs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    image_properties: Mapping[str, str] | None = None
    """None: nothing is said of the image."""
    from_volume: bool = False
    """Whether the root disk is a volume."""


def server_metadata(ensemble_id: str, member: str) -> dict[str, str]:
    """The Nova metadata that marks a server as a member.

    Not tags: Nova allows neither slash nor comma in them, and 60 characters.
    """
    return {"moorage:ensemble": ensemble_id, "moorage:member": member}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What Nova needs to create a role's servers, beside the flavor; names or ids.

    It does not matter for placement, and may change while places are held.
    """

    image: str | None = None
    networks: tuple[str, ...] = ()
    """One port in each; or only `auto` or `none`."""
    key_name: str | None = None
    user_data: str | None = None
    """As text; Nova gets it in base64."""
    security_groups: tuple[str, ...] = ()
    config_drive: bool | None = None
    volume_gb: int | None = None
    """Size of the volume that a role boots from; None: that of its flavor's disk."""
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
