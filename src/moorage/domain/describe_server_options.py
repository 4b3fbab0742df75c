"""Options of servers in descriptions: what Nova needs to create them, beside the flavor."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import plain_values
from moorage.domain.errors import InvalidDescription
from moorage.domain.nova_servers import ServerOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_NETWORK: Final = "none"
ANY_NETWORK: Final = "auto"
ALONE: Final = frozenset({NO_NETWORK, ANY_NETWORK})
"""Nova's words in place of networks: no port at all, and whatever the project has."""
MAX_USER_DATA: Final = 49_151
"""Bytes; Nova takes 65,535 of them in base64."""
MAX_NETWORKS: Final = 64
MAX_VOLUME: Final = 1_000_000
MAX_METADATA: Final = 120
"""Entries; Nova takes 128, of which Moorage writes some."""
OWN_METADATA: Final = "moorage:"
"""The beginning of the keys by which a server says which member it is."""
_KEY: Final = re.compile(r"[A-Za-z0-9_:. -]{1,255}", re.ASCII)
_VALUE: Final = 255


def read_server_options(source: object, path: str) -> ServerOptions:
    """Read `server` of a role.

    Raises:
        InvalidDescription: an unknown or ill-typed field, or one that Nova would refuse.
    """
    fields = plain_values.mapping(source, path)
    plain_values.only(fields, ServerOptions.__dataclass_fields__, path)
    return ServerOptions(
        image=_name(fields, "image", path),
        networks=_networks(fields.get("networks", ()), f"{path}.networks"),
        key_name=_name(fields, "key_name", path),
        user_data=_user_data(fields.get("user_data"), f"{path}.user_data"),
        security_groups=_names(fields.get("security_groups", ()), f"{path}.security_groups"),
        config_drive=_config_drive(fields.get("config_drive"), f"{path}.config_drive"),
        volume_gb=_volume(fields.get("volume_gb"), f"{path}.volume_gb"),
        metadata=_metadata(fields.get("metadata", {}), f"{path}.metadata"),
    )


def _name(fields: Mapping[str, object], field_name: str, path: str) -> str | None:
    found = fields.get(field_name)
    return None if found is None else plain_values.name(found, f"{path}.{field_name}")


def _names(source: object, path: str) -> tuple[str, ...]:
    return tuple(
        plain_values.name(one, f"{path}[{i}]")
        for i, one in enumerate(plain_values.listed(source, path))
    )


def _networks(source: object, path: str) -> tuple[str, ...]:
    found = _names([source] if isinstance(source, str) else source, path)
    if len(found) > MAX_NETWORKS:
        raise InvalidDescription(f"more than {MAX_NETWORKS} networks", path=path)
    if len(found) > 1 and ALONE & set(found):
        raise InvalidDescription("auto and none stand alone, beside no network", path=path)
    return found


def _user_data(source: object, path: str) -> str | None:
    if source is None:
        return None
    found = plain_values.text(source, path, most=MAX_USER_DATA)
    if len(found.encode(errors="replace")) > MAX_USER_DATA:
        raise InvalidDescription(f"{path} is longer than {MAX_USER_DATA} bytes", path=path)
    return found


def _config_drive(source: object, path: str) -> bool | None:
    if source is not None and not isinstance(source, bool):
        raise InvalidDescription(f"{path} is true or false, not {source!r}", path=path)
    return source


def _volume(source: object, path: str) -> int | None:
    if source is None:
        return None
    if not isinstance(source, int) or isinstance(source, bool) or not 1 <= source <= MAX_VOLUME:
        raise InvalidDescription(f"{path} is a size from 1 to {MAX_VOLUME} GB", path=path)
    return source


def _metadata(source: object, path: str) -> Mapping[str, str]:
    entries = plain_values.mapping(source, path)
    if len(entries) > MAX_METADATA:
        raise InvalidDescription(f"more than {MAX_METADATA} metadata entries", path=path)
    for key in entries:
        if _KEY.fullmatch(key) is None:
            raise InvalidDescription(
                f"{key!r} is no key of Nova's metadata: letters, digits and _ : . - or blanks,"
                " at most 255",
                path=path,
            )
        if key.startswith(OWN_METADATA):
            raise InvalidDescription(
                f"keys that begin with {OWN_METADATA} are Moorage's own", path=f"{path}.{key}"
            )
    return MappingProxyType(
        {
            key: plain_values.text(value, f"{path}.{key}", most=_VALUE)
            for key, value in sorted(entries.items())
        }
    )
