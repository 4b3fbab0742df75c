"""The requests to Nova that create the servers of an ensemble's roles, with every name resolved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.client.errors import Missing
from moorage.client.nova import on_volume, server_request
from moorage.domain.describe_server_options import ALONE, read_server_options
from moorage.domain.ensembles import OF_NOVA
from moorage.domain.errors import InvalidDescription
from moorage.domain.nova_servers import ServerOptions, server_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.client.nova import Nova
    from moorage.wire.ensembles import Ensemble, Role

CLAIM: Final = "moorage:claim"
ENSEMBLE: Final = "moorage:ensemble"
MEMBER: Final = "moorage:member"


def server_name(ensemble: str, member: str) -> str:
    """The name of a member's server: `hadoop-worker-0` for `worker[0]` of hadoop."""
    return f"{ensemble}-{member.replace('[', '-').removesuffix(']')}"[:255]


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """What the servers of one role have in common."""

    flavor: str
    """As the role is described: its name in Moorage."""
    fields: Mapping[str, Any]
    """Of the request to Nova, ids for names."""
    metadata: Mapping[str, str]

    def server(self, ensemble: Ensemble, member: str, claim_id: str) -> dict[str, Any]:
        """The request that creates a member's server."""
        marks = {**server_metadata(ensemble.id, member), CLAIM: claim_id}
        name = server_name(ensemble.name, member)
        return {**self.fields, "name": name, "metadata": {**self.metadata, **marks}}

    def described(self) -> dict[str, Any]:
        """The server as a claim describes it."""
        return {"flavorRef": self.flavor}


def merged(role: Role, given: ServerOptions) -> ServerOptions:
    """The options of a role's servers; what the caller gives goes before what is described."""
    described = (
        ServerOptions()
        if isinstance(role.server, msgspec.UnsetType)
        else read_server_options(msgspec.to_builtins(role.server), f"role {role.name}: server")
    )
    said = {
        name: value
        for name in ServerOptions.__dataclass_fields__
        if (value := getattr(given, name)) not in (None, (), {})
    }
    if "metadata" in said:
        said["metadata"] = MappingProxyType({**described.metadata, **given.metadata})
    return replace(described, **said)


def role_requests(
    nova: Nova, ensemble: Ensemble, roles: Iterable[str], given: ServerOptions
) -> dict[tuple[str, int], RoleRequest]:
    """The requests of these roles, or of their alternatives by number, that Nova creates.

    Nothing is claimed or created yet: mistakes are found first.

    Raises:
        InvalidDescription: a role lacks what Nova needs, or has devices that only ports and
            volumes of its own would get.
        Missing, Ambiguous: a flavor, image or network that Nova, Glance or Neutron do not know.
        SourceFailed, NoEndpoint: one of these does not answer, or is not in the catalog.
    """
    wanted = set(roles)
    return {
        (role.name, number): _request(nova, one, merged(role, given))
        for role in ensemble.members
        if role.name in wanted
        for number, one in enumerate(role.alternatives or [role])
        if one.kind in OF_NOVA
    }


def _request(nova: Nova, role: Role, options: ServerOptions) -> RoleRequest:
    where = f"role {role.name}"
    if role.flavor is None:
        raise InvalidDescription(
            f"{where} has resources and no flavor, and Nova creates no server without one"
        )
    if role.ports or role.volumes:
        raise InvalidDescription(
            f"{where} has ports or volumes with resources: create these first, then its servers"
            " with the hint or the header (guide: Using Moorage with Nova)"
        )
    if options.image is None:
        raise InvalidDescription(
            f"{where} names no image: give --image, or describe it:"
            f" moorage ensemble set ENSEMBLE --member '{role.name}:server={{image: NAME}}'"
        )
    try:
        flavor = nova.flavor(role.flavor)
        image = nova.image_id(options.image)
        networks = [one if one in ALONE else nova.network_id(one) for one in options.networks]
    except Missing as error:
        raise InvalidDescription(f"{where}: {error.message}") from error
    fields = {"flavorRef": flavor.id, **server_request(options, image, networks)}
    if role.boot_from_volume:
        size = options.volume_gb or flavor.disk
        if not size:
            raise InvalidDescription(
                f"{where} boots from a volume, and its flavor has no disk: give the size,"
                " server: {volume_gb: N}"
            )
        fields = on_volume(fields, size)
    return RoleRequest(role.flavor, MappingProxyType(fields), options.metadata)
