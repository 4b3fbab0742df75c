"""Logs in to Keystone as other OpenStack clients do, and reads the APIs from its catalog.

The usual variables (`OS_AUTH_URL`, `OS_USERNAME`, …) or an entry of `clouds.yaml` give the identity
and the method; the plug-in that `auth_type` names does it. Nothing here is printed or logged.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.client.certificates import trusted
from moorage.client.errors import NoEndpoint
from moorage.client.service_types import (
    COMPUTE,
    IMAGE,
    NATIVE,
    NETWORK,
    PLACEMENT,
    RESERVATION,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from moorage.client.session import SessionServices

# It warns of what the errors here say; without a handler that would go to the terminal as well.
logging.getLogger("keystoneauth").addHandler(logging.NullHandler())

_TIMEOUT: Final = 120.0
"""Seconds until an answer is given up."""
_OFF: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Login:
    """How to log in, and which catalog endpoints to use. Options have the plug-ins' names."""

    auth_type: str
    option: Callable[[str], str | None] = field(repr=False)
    """The value of a plug-in's option by its name, or None."""
    source: str
    """The source of these options, for errors."""
    region: str | None = None
    interface: str = "public"
    overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Service type -> URL that counts instead of the catalog's."""
    verify: bool | str = True
    """Whether certificates are checked, or by which authorities' file."""
    certificate: tuple[str, str] | None = None
    """Of the client itself, with its key."""


def from_environment(environment: Mapping[str, str]) -> Login | None:
    """The login of the `OS_` variables; None where they name no identity service."""
    if not environment.get("OS_AUTH_URL"):
        return None
    said = {name: text for name, text in environment.items() if name.startswith("OS_") and text}
    by_token = "OS_TOKEN" in said and not {"OS_PASSWORD", "OS_USERNAME", "OS_USER_ID"} & set(said)
    certificate, key = said.get("OS_CERT"), said.get("OS_KEY")
    return Login(
        auth_type=said.get("OS_AUTH_TYPE") or ("token" if by_token else "password"),
        option=lambda name: said.get(f"OS_{name.upper()}"),
        source="the OS_ variables",
        region=said.get("OS_REGION_NAME"),
        interface=_interface(said.get("OS_INTERFACE") or said.get("OS_ENDPOINT_TYPE")),
        overrides=_overrides(lambda service: said.get(f"OS_{service.upper()}_ENDPOINT_OVERRIDE")),
        verify=_verify(said.get("OS_INSECURE", "false").lower() in _OFF, said.get("OS_CACERT")),
        certificate=(certificate, key) if certificate and key else None,
    )


def from_cloud(name: str, entry: Mapping[str, Any]) -> Login | None:
    """The login of an entry of `clouds.yaml`; None where it names no identity service."""
    auth = entry.get("auth")
    if not isinstance(auth, dict) or not auth.get("auth_url"):
        return None
    own = {str(key).replace("-", "_"): str(value) for key, value in auth.items()}
    text = {key: str(value) for key, value in entry.items() if value is not None}
    by_token = "token" in own and not {"password", "username", "user_id"} & set(own)
    return Login(
        auth_type=text.get("auth_type") or ("token" if by_token else "password"),
        option=own.get,
        source=f"the cloud {name}",
        region=text.get("region_name"),
        interface=_interface(text.get("interface") or text.get("endpoint_type")),
        overrides=_overrides(lambda service: text.get(f"{service}_endpoint_override")),
        verify=_verify(entry.get("verify") is not False, text.get("cacert")),
        certificate=(text["cert"], text["key"]) if {"cert", "key"} <= text.keys() else None,
    )


def log_in(login: Login) -> SessionServices:
    """A session with this login; it gets a token at the first call, and another in time.

    Raises:
        NoEndpoint: something is missing: the packages, an option.
    """
    try:
        from keystoneauth1 import exceptions, session  # noqa: PLC0415 - an extra, slow to import

        from moorage.client.session import SessionServices  # noqa: PLC0415 - as above
    except ImportError as error:
        raise NoEndpoint(
            f"to log in to Keystone install the extra moorage[keystone]: {error}"
        ) from error
    try:
        plugin = _plugin(login)
    except exceptions.MissingRequiredOptions as error:
        names = ", ".join(option.name for option in error.options)
        raise NoEndpoint(f"{login.source} lack, to log in to Keystone: {names}") from error
    except exceptions.NoMatchingPlugin as error:
        raise NoEndpoint(f"{login.source} name an unknown auth type: {login.auth_type}") from error
    except exceptions.AuthPluginException as error:
        raise NoEndpoint(f"{login.source} do not make a login: {error}") from error
    made = session.Session(
        auth=plugin,
        verify=login.verify,
        cert=login.certificate,
        app_name="moorage",
        timeout=_TIMEOUT,
    )
    return SessionServices(made, login.interface, login.region, login.overrides)


def _plugin(login: Login) -> Any:  # noqa: ANN401 - keystoneauth's class
    from keystoneauth1 import loading  # noqa: PLC0415 - an extra, slow to import

    _check_password(login)
    loader: Any = loading.get_plugin_loader(login.auth_type)
    given = {}
    for option in loader.get_options():
        names = [option.dest, *(old.dest for old in option.deprecated)]
        found = next((text for name in names if (text := login.option(name))), None)
        if found is not None:
            given[option.dest] = found
    return loader.load_from_options(**given)


def _check_password(login: Login) -> None:
    """Check that a login by password has one and a user: keystoneauth misses them only at a call.

    Raises:
        NoEndpoint: something is missing.
    """
    if login.auth_type not in {"password", "v3password"}:
        return
    said = {name: any(map(login.option, names)) for name, names in _OF_PASSWORD.items()}
    if missing := [name for name, given in said.items() if not given]:
        raise NoEndpoint(f"{login.source} lack, to log in to Keystone: {', '.join(missing)}")


_OF_PASSWORD: Final = MappingProxyType(
    {
        "username or user_id": ("username", "user_name", "user_id"),
        "password": ("password",),
    }
)
"""What a login by password needs, by any of these options."""


def trust(login: Login) -> ssl.SSLContext | bool:
    """The certificate authorities for calls of the APIs: those of the login."""
    return trusted(login.verify, login.certificate)


def _overrides(named: Callable[[str], str | None]) -> Mapping[str, str]:
    known = (NATIVE, PLACEMENT, RESERVATION, COMPUTE, IMAGE, NETWORK)
    return {service: url for service in known if (url := named(service))}


def _interface(said: str | None) -> str:
    """The interface's present name; it was once written `publicURL`."""
    return (said or "public").removesuffix("URL")


def _verify(wanted: bool, authorities: str | None) -> bool | str:  # noqa: FBT001 - the very setting
    return (authorities or True) if wanted else False
