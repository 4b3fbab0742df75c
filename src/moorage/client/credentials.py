"""Who asks another service: a token that is given, or one that Keystone issues and renews."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Mapping


class Credentials(Protocol):
    """Where a service's token comes from."""

    def token(self) -> str:
        """The token to send."""

    def renew(self) -> bool:
        """Forget a token that was refused; False where there is no other to be had."""


@dataclass(frozen=True, slots=True)
class GivenToken:
    """One token, for better or worse."""

    value: str

    def token(self) -> str:
        """See `Credentials`."""
        return self.value

    def renew(self) -> bool:
        """See `Credentials`."""
        return False


class Keystone:
    """Tokens from Keystone, by the variables `OS_*` that the `openstack` command reads."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the variables; nothing is asked yet.

        Raises:
            InvalidDescription: the library is missing, or a variable.
        """
        try:
            from keystoneauth1 import exceptions, loading, session  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise InvalidDescription(f"Keystone needs the extra [keystone]: {error}") from error
        self._failures: tuple[type[Exception], ...] = (exceptions.ClientException,)
        kind = environment.get("OS_AUTH_TYPE", "password")
        try:
            loader: Any = loading.get_plugin_loader(kind)
            given = {
                option.dest: value
                for option in loader.get_options()
                if (value := _value(option, environment)) is not None
            }
            self._plugin: Any = loader.load_from_options(**given)
        except (exceptions.ClientException, TypeError) as error:
            raise InvalidDescription(f"the variables OS_* do not do: {error}") from error
        verify = environment.get("OS_CACERT") or True
        self._session: Any = session.Session(auth=self._plugin, verify=verify)
        self._region = environment.get("OS_REGION_NAME")
        self._interface = environment.get("OS_INTERFACE", "public")

    def endpoint(self) -> str:
        """Where the catalog says that Placement is.

        Raises:
            InvalidDescription: Keystone refuses, or its catalog has no such service.
        """
        try:
            found = self._session.get_endpoint(
                service_type="placement", interface=self._interface, region_name=self._region
            )
        except self._failures as error:
            raise InvalidDescription(f"Keystone: {error}") from error
        if not found:
            raise InvalidDescription("Keystone's catalog has no placement service")
        return str(found)

    def token(self) -> str:
        """See `Credentials`.

        Raises:
            InvalidDescription: Keystone refuses.
        """
        try:
            return str(self._session.get_token())
        except self._failures as error:
            raise InvalidDescription(f"Keystone: {error}") from error

    def renew(self) -> bool:
        """See `Credentials`."""
        return bool(self._plugin.invalidate())


def _value(option: Any, environment: Mapping[str, str]) -> str | None:  # noqa: ANN401 - keystoneauth1's class
    names = [option.name, *(one.name for one in option.deprecated)]
    variables = (f"OS_{name.replace('-', '_').upper()}" for name in names)
    return next((environment[name] for name in variables if name in environment), None)
