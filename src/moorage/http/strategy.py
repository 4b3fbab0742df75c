"""The way to know callers that the setting `auth` names, with the refusals that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.errors import InvalidDescription
from moorage.http.auth import noauth2
from moorage.http.refusals import unauthorized, unauthorized_bare, unauthorized_by_keystone
from moorage.http.token_file import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.http.auth import Authenticate
    from moorage.http.config import CallersConfig
    from moorage.http.wsgi import Answer


@dataclass(frozen=True, slots=True)
class Strategy:
    """How callers are known, and the 401 of each kind of mount."""

    authenticate: Authenticate
    unauthorized: Callable[[str], Answer] = unauthorized
    """In the form of the house."""
    unauthorized_bare: Callable[[str], Answer] = unauthorized_bare
    """In the form the reference Placement server has under this strategy."""


def strategy(auth: str, config: CallersConfig) -> Strategy:
    """The strategy of this name: `noauth2`, `token-file` or `keystone`.

    Raises:
        InvalidDescription: what it needs is missing or cannot be understood.
    """
    match auth:
        case "keystone":
            return _keystone(config)
        case "token-file" if config.token_file:
            return Strategy(TokenFile(config.token_file))
        case "noauth2":
            return Strategy(noauth2)
        case _:
            raise InvalidDescription(f"auth {auth} lacks its settings")


def _keystone(config: CallersConfig) -> Strategy:
    try:
        from moorage.http.keystone import Keystone  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise InvalidDescription(
            f"auth keystone needs the packages of the extra moorage[keystone]: {error}"
        ) from error
    made = Keystone(config.keystone)
    challenge = ("www-authenticate", made.challenge)
    return Strategy(
        made,
        partial(unauthorized, challenge=(challenge,)),
        partial(unauthorized_by_keystone, challenge=(challenge,)),
    )
