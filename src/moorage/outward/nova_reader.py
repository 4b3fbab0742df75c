"""Reads lists of the compute API, with the credentials of the section [nova]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.client.nova_source import SERVICE, VERSION
from moorage.outward.nova import compute_adapter
from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

_GOOD: Final = 200


class NovaReader:
    """A connection as `client.nova_source` reads over one."""

    def __init__(self, section: Mapping[str, str], timeout: float) -> None:
        """Read the section.

        Raises:
            InvalidDescription: the packages or an option are missing.
        """
        self._compute = compute_adapter(section, timeout, "nova_sync")

    def __call__(self, path: str) -> Any:  # noqa: ANN401 - JSON is what it is
        """GET a path of the compute API.

        Raises:
            OutwardFailure: Keystone or Nova refuses, fails, or does not answer in time.
        """
        from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra, slow to import

        headers = {"OpenStack-API-Version": f"{SERVICE} {VERSION}"}
        try:
            answer = self._compute.get(path, headers=headers, raise_exc=False)
        except exceptions.ClientException as error:
            raise OutwardFailure(f"Nova: {error}") from error
        if answer.status_code != _GOOD:
            raise OutwardFailure(f"Nova answered {answer.status_code} to GET {path}")
        try:
            return answer.json()
        except ValueError as error:
            raise OutwardFailure(f"Nova's answer to GET {path} is not JSON") from error
