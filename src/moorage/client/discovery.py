"""Where the service is and who asks: options first, then the environment, then files.

1. `--endpoint`, then `MOORAGE_ENDPOINT`.
2. `OS_CLOUD`: a running simulation of that name, else that cloud in `clouds.yaml`, of which two
   keys are read: `ensemble_endpoint_override`, and `token` below `auth`.
3. `http://127.0.0.1:8778`, where `moorage serve` listens unless told otherwise.

The token: `--token`, `MOORAGE_TOKEN`, `OS_TOKEN`, else what came with the endpoint, else the
operator's of `noauth2`. With `--project` the caller is a user of that project, by default with
role `member`; `noauth2` believes it, a real cloud does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.client import registry
from moorage.client.errors import NoEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:8778"
OPERATOR_TOKEN: Final = "admin"  # noqa: S105 - noauth2's word for "the operator", not a secret


@dataclass(frozen=True, slots=True)
class Access:
    """Where to ask and as whom. `roles` None leaves them to the token."""

    endpoint: str
    token: str
    roles: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line said; None where it said nothing."""

    endpoint: str | None = None
    token: str | None = None
    project: str | None = None
    role: str | None = None


def find(wishes: Wishes, environment: Mapping[str, str]) -> Access:
    """Settle endpoint and identity.

    Raises:
        NoEndpoint: `OS_CLOUD` names neither a running simulation nor a usable cloud.
    """
    endpoint, found_token = _endpoint(wishes, environment)
    given = wishes.token or environment.get("MOORAGE_TOKEN") or environment.get("OS_TOKEN")
    project = wishes.project or environment.get("MOORAGE_PROJECT")
    role = wishes.role or environment.get("MOORAGE_ROLE")
    if given is None and project is not None:
        return Access(endpoint, f"{project}-user:{project}", ((role or "member"),))
    token = given or found_token or OPERATOR_TOKEN
    return Access(endpoint, token, None if role is None else (role,))


def _endpoint(wishes: Wishes, environment: Mapping[str, str]) -> tuple[str, str | None]:
    named = wishes.endpoint or environment.get("MOORAGE_ENDPOINT")
    if named:
        return named.rstrip("/"), None
    cloud = environment.get("OS_CLOUD")
    if not cloud:
        return DEFAULT_ENDPOINT, None
    sim = registry.read(registry.state_directory(environment), cloud)
    if sim is not None:
        return sim.endpoint, sim.token
    return _from_clouds(cloud, environment)


def _from_clouds(cloud: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    for path in _clouds_files(environment):
        entry = _cloud(path, cloud)
        if entry is None:
            continue
        endpoint = entry.get("ensemble_endpoint_override")
        if not isinstance(endpoint, str):
            raise NoEndpoint(
                f"OS_CLOUD={cloud}: its entry in {path} has no ensemble_endpoint_override"
            )
        auth = entry.get("auth")
        token = auth.get("token") if isinstance(auth, dict) else None
        return endpoint.rstrip("/"), token if isinstance(token, str) else None
    raise NoEndpoint(
        f"OS_CLOUD={cloud} names no running simulation (start one: moorage sim start"
        f" --name {cloud} --fleet FILE) and no cloud of a clouds.yaml"
    )


def _clouds_files(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("OS_CLIENT_CONFIG_FILE")
    config = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    places = [Path(named)] if named else []
    places += [Path(), Path(config) / "openstack", Path("/etc/openstack")]
    return [path if path.suffix else path / "clouds.yaml" for path in places]


def _cloud(path: Path, cloud: str) -> Mapping[str, Any] | None:
    import yaml  # noqa: PLC0415 - only a user of clouds.yaml pays for it

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise NoEndpoint(f"OS_CLOUD={cloud}: cannot read {path}: {error}") from error
    clouds = document.get("clouds") if isinstance(document, dict) else None
    entry = clouds.get(cloud) if isinstance(clouds, dict) else None
    return entry if isinstance(entry, dict) else None
