"""Deletes servers in Nova, with credentials from Keystone.

The section [nova] is written as the sections of other services that call Nova are: `auth_type`
with the options of that plug-in, `region_name`, `valid_interfaces`, `endpoint_override`,
`cafile`, `insecure`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.outward.timeout import call_with_timeout
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effect_dispatch import Message

_GONE: Final = 404
_GOOD: Final = range(200, 300)
_TRUE: Final = frozenset({"1", "true", "yes", "on"})


class NovaClient:
    """A client of the compute API; logs in when needed, and keeps its token."""

    def __init__(self, section: Mapping[str, str], timeout: float) -> None:
        """Read the section.

        Raises:
            InvalidDescription: the packages or an option are missing.
        """
        self._timeout = timeout
        self._lock = threading.Lock()
        self._compute = compute_adapter(section, timeout, "end_servers")

    def __call__(self, message: Message) -> str:
        """Ask Nova to delete the message's server; a server unknown to Nova counts as deleted.

        Raises:
            OutwardFailure: Keystone or Nova refuses, fails, or does not answer in time.
        """
        server = str(message.subject)
        status = call_with_timeout(self._timeout, "Nova", lambda: self._delete(server, message.id))
        if status == _GONE:
            return "Nova does not know the server"
        if status not in _GOOD:
            raise OutwardFailure(f"Nova answered {status}")
        return "Nova deletes the server"

    def _delete(self, server: str, effect_id: str) -> int:
        from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra, slow to import

        try:
            answer = self._compute.delete(
                f"/servers/{server}",
                headers={"X-OpenStack-Request-ID": f"req-{effect_id}"},
                raise_exc=False,
            )
        except exceptions.ClientException as error:
            raise OutwardFailure(f"Nova: {error}") from error
        return int(answer.status_code)


def compute_adapter(section: Mapping[str, str], timeout: float, setting: str) -> Any:  # noqa: ANN401 - keystoneauth's class
    """An adapter for the compute API, as configured in the section; `setting` asks for it.

    Raises:
        InvalidDescription: it does not.
    """
    try:
        from keystoneauth1 import adapter, exceptions, loading, session  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidDescription(
            f"{setting} nova needs the extra moorage[keystone]: {error}", path=setting
        ) from error
    insecure = section.get("insecure", "").lower() in _TRUE
    interfaces = section.get("valid_interfaces", "internal,public")
    try:
        loader: Any = loading.get_plugin_loader(section.get("auth_type", "password"))
        plugin = loader.load_from_options(**_given(section, loader))
    except (
        exceptions.MissingRequiredOptions,
        exceptions.NoMatchingPlugin,
        exceptions.AuthPluginException,
    ) as error:
        raise InvalidDescription(f"section [nova]: {error}", path="nova") from error
    return adapter.Adapter(
        session.Session(
            auth=plugin,
            verify=False if insecure else section.get("cafile") or True,
            timeout=timeout,
            app_name="moorage",
        ),
        service_type="compute",
        interface=[one.strip() for one in interfaces.split(",")],
        region_name=section.get("region_name"),
        endpoint_override=section.get("endpoint_override"),
    )


def _given(section: Mapping[str, str], loader: Any) -> dict[str, str]:  # noqa: ANN401 - keystoneauth's class
    """The plug-in's options in the section, under any of their names."""
    given = {}
    for option in loader.get_options():
        names = [option.dest, option.name, *(old.dest for old in option.deprecated)]
        found = next((section[name] for name in names if name in section), None)
        if found is not None:
            given[option.dest] = found
    return given
