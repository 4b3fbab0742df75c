"""Endpoint and identity: from options first, then the environment, then files.

1. `--endpoint`, then `--os-cloud`, then `MOORAGE_ENDPOINT`, then `OS_CLOUD`. A cloud is a running
   simulation of that name, else an entry of `clouds.yaml`: one that names an identity service is
   logged in to (see `keystone`), of others `ensemble_endpoint_override` and the `token` below
   `auth` are read.
2. `OS_AUTH_URL`: a login, too.
3. The simulation that runs, if there is exactly one.
4. `http://127.0.0.1:8778`, where `moorage serve` listens by default.

The token: `--token`, `MOORAGE_TOKEN`, else what logging in gives or came with the endpoint, else
`OS_TOKEN`, else the operator's of `noauth2`. With `--project` the caller is a user of that
project, by default with role `member`; `noauth2` believes it, a real cloud does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.client import keystone, registry
from moorage.client.errors import NoEndpoint
from moorage.client.service_types import NATIVE, PLACEMENT

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from moorage.client.keystone import Login
    from moorage.client.session import SessionServices


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


DEFAULT_ENDPOINT: Final = "http://127.0.0.1:8778"
OPERATOR_TOKEN: Final = "admin"  # noqa: S105 - noauth2's word for "the operator", not a secret


@dataclass(frozen=True, slots=True)
class Access:
    """An endpoint and an identity. `roles` None: the token's own."""

    endpoint: str
    token: str = field(repr=False)
    roles: tuple[str, ...] | None = None
    trust: ssl.SSLContext | bool = True
    """The trusted certificate authorities; False: certificates are not verified."""
    simulation: str | None = None
    """The name of the simulation that is used because nothing else is configured."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of the command line; None where one is absent."""

    endpoint: str | None = None
    token: str | None = None
    project: str | None = None
    role: str | None = None
    cloud: str | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """The endpoint as far as it is known without a login, with its token or login."""

    endpoint: str | None
    token: str | None = None
    login: Login | None = None
    simulation: str | None = None


def find(wishes: Wishes, environment: Mapping[str, str]) -> Access | SessionServices:
    """Determine endpoint and identity, or the login by which the first call gets them.

    Raises:
        NoEndpoint: the cloud is neither a running simulation nor usable, or a login cannot be
            tried.
    """
    place = _place(wishes, environment)
    token = wishes.token or environment.get("MOORAGE_TOKEN")
    project = wishes.project or environment.get("MOORAGE_PROJECT")
    role = wishes.role or environment.get("MOORAGE_ROLE")
    if token is None and place.login is not None:
        if project or role:
            raise NoEndpoint(
                "a project or role of one's choice is for noauth2; in Keystone's name say"
                " OS_PROJECT_NAME, and leave roles to it"
            )
        return _logged_in(place.login, place.endpoint)
    endpoint = place.endpoint or _without_catalog(place.login)
    trust = True if place.login is None else keystone.trust(place.login)
    given = token or (None if place.token else environment.get("OS_TOKEN"))
    if given is None and project is not None:
        roles: tuple[str, ...] | None = ((role or "member"),)
        token = f"{project}-user:{project}"
    else:
        roles = None if role is None else (role,)
        token = given or place.token or OPERATOR_TOKEN
    return Access(endpoint, token, roles, trust, place.simulation)


def _without_catalog(login: Login | None) -> str:
    """The endpoint for a token that was given."""
    if login is None:
        return DEFAULT_ENDPOINT
    override = login.overrides.get(NATIVE)
    if override is None:
        raise NoEndpoint(
            f"{login.source} lead to the service by a login, and a token was given instead;"
            " say where the service is: MOORAGE_ENDPOINT"
        )
    return override.rstrip("/").removesuffix("/v1")


def _logged_in(login: Login, endpoint: str | None) -> SessionServices:
    services = keystone.log_in(login)
    if endpoint is None:
        return services
    both = {NATIVE: endpoint, PLACEMENT: endpoint}
    return replace(services, overrides={**services.overrides, **both})


def _place(wishes: Wishes, environment: Mapping[str, str]) -> _Place:
    named = wishes.endpoint or (None if wishes.cloud else environment.get("MOORAGE_ENDPOINT"))
    cloud = wishes.cloud or environment.get("OS_CLOUD")
    if named:
        login = _login_of(cloud, environment) or keystone.from_environment(environment)
        return _Place(named.rstrip("/"), login=login)
    if not cloud:
        login = keystone.from_environment(environment)
        simulation = _only_simulation(environment) if login is None else None
        return simulation or _Place(None, login=login)
    sim = registry.known(registry.state_directory(environment), cloud)
    if sim is None:
        return _from_clouds(cloud, environment)
    if not registry.alive(sim):
        raise NoEndpoint(
            f"OS_CLOUD={cloud} names a simulation that was killed (take it up again: moorage sim"
            f" resume --name {cloud}; or drop it: moorage sim stop --name {cloud})"
        )
    return _Place(sim.endpoint, sim.token)


def _only_simulation(environment: Mapping[str, str]) -> _Place | None:
    """The simulation that runs; None without any, or with several."""
    running = list(islice(registry.running(registry.state_directory(environment)), 2))
    if len(running) != 1:
        return None
    [sim] = running
    return _Place(sim.endpoint, sim.token, simulation=sim.name)


def override(service: str, environment: Mapping[str, str]) -> str | None:
    """The URL that the variables, or the cloud they name, give for a service; None: neither."""
    named = environment.get(f"OS_{service.upper()}_ENDPOINT_OVERRIDE")
    cloud = environment.get("OS_CLOUD")
    if named or not cloud:
        return named or None
    found = find_cloud(cloud, environment)
    url = None if found is None else found[1].get(f"{service}_endpoint_override")
    return url if isinstance(url, str) else None


def login_from(environment: Mapping[str, str]) -> Login | None:
    """The login of the variables: of the cloud they name, or their own.

    Raises:
        NoEndpoint: a file cannot be read.
    """
    cloud = environment.get("OS_CLOUD")
    return _login_of(cloud, environment) or keystone.from_environment(environment)


def _login_of(cloud: str | None, environment: Mapping[str, str]) -> Login | None:
    """The login of the cloud whose endpoint is known already; a simulation's has none."""
    found = find_cloud(cloud, environment) if cloud else None
    return None if cloud is None or found is None else keystone.from_cloud(cloud, found[1])


def _from_clouds(cloud: str, environment: Mapping[str, str]) -> _Place:
    found = find_cloud(cloud, environment)
    if found is None:
        raise NoEndpoint(
            f"OS_CLOUD={cloud} names no running simulation (start one: moorage sim start"
            f" --name {cloud} --fleet FILE) and no cloud of a clouds.yaml"
        )
    path, entry = found
    login = keystone.from_cloud(cloud, entry)
    if login is not None:
        return _Place(None, login=login)
    endpoint = entry.get("ensemble_endpoint_override")
    if not isinstance(endpoint, str):
        raise NoEndpoint(
            f"OS_CLOUD={cloud}: its entry in {path} has neither an auth_url to log in at nor an"
            " ensemble_endpoint_override"
        )
    auth = entry.get("auth")
    token = auth.get("token") if isinstance(auth, dict) else None
    return _Place(endpoint.rstrip("/"), token if isinstance(token, str) else None)
