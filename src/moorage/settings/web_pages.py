"""What browsers get: sessions of our own page, and answers for pages of others (CORS)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.http.config import SessionsConfig
from moorage.http.cors import CorsConfig
from moorage.settings.effective_values import BadSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.settings.effective_values import Effective


def sessions(effective: Effective) -> SessionsConfig:
    """Sessions of the page; a file named for their key must exist.

    Raises:
        BadSetting: it does not.
    """
    value = effective.values
    file = value["session_key_file"]
    if file and not Path(file).is_file():
        source = effective.sources["session_key_file"]
        raise BadSetting("session_key_file", source, f"{file} is no file")
    return SessionsConfig(
        lifetime=value["session_lifetime"],
        key_file=str(Path(file).absolute()) if file else None,
        embed_origins=tuple(value["embed_origins"]),
    )


def cors(value: Mapping[str, Any]) -> CorsConfig:
    """Which pages of others may read answers."""
    return CorsConfig(
        allowed_origins=frozenset(value["cors_allowed_origin"]),
        allow_methods=frozenset(value["cors_allow_method"]),
        allow_headers=frozenset(header.lower() for header in value["cors_allow_header"]),
        expose_headers=tuple(value["cors_expose_header"]),
        allow_credentials=value["cors_allow_credentials"],
        max_age=value["cors_max_age"],
    )
