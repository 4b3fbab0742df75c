"""The user's clouds from `clouds.yaml`, merged with `secure.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.client.errors import NoEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_cloud(name: str, environment: Mapping[str, str]) -> tuple[Path, dict[str, Any]] | None:
    """The entry of that name in the first file that has one, and the file; None without any.

    Raises:
        NoEndpoint: a file cannot be read.
    """
    for path in _files(environment):
        entry = _entry(path, name)
        if entry is not None:
            secret = _entry(path.with_name("secure.yaml"), name) or {}
            return path, _merged(entry, secret)
    return None


def _files(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("OS_CLIENT_CONFIG_FILE")
    config = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    places = [Path(named)] if named else []
    places += [Path(), Path(config) / "openstack", Path("/etc/openstack")]
    return [path if path.suffix else path / "clouds.yaml" for path in places]


def _entry(path: Path, cloud: str) -> dict[str, Any] | None:
    import yaml  # noqa: PLC0415 - only a user of clouds.yaml pays for it

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, yaml.YAMLError) as error:
        # Not what YAML says of it: that quotes the text, which may be a password.
        why = error.strerror if isinstance(error, OSError) else "it is no YAML"
        raise NoEndpoint(f"OS_CLOUD={cloud}: cannot read {path}: {why}") from error
    clouds = document.get("clouds") if isinstance(document, dict) else None
    entry = clouds.get(cloud) if isinstance(clouds, dict) else None
    return entry if isinstance(entry, dict) else None


def _merged(entry: Mapping[str, Any], secret: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, overridden mapping by mapping by the values of `secure.yaml`."""
    both = {**entry, **secret}
    for key in entry.keys() & secret.keys():
        if isinstance(entry[key], dict) and isinstance(secret[key], dict):
            both[key] = _merged(entry[key], secret[key])
    return both
