"""The authentication strategy that the setting `auth` names, with its 401 answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.errors import InvalidDescription
from moorage.http.auth import bounded, noauth2
from moorage.http.response import unauthorized, unauthorized_bare, unauthorized_by_keystone
from moorage.http.token_file import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.http.auth import Authenticate
    from moorage.http.config import CallersConfig, IdentityAddress
    from moorage.http.wsgi import Answer


@dataclass(frozen=True, slots=True)
class AuthStrategy:
    """An authentication strategy, and the 401 of each kind of mount."""

    authenticate: Authenticate
    unauthorized: Callable[[str], Answer] = unauthorized
    """In Moorage's own error form."""
    unauthorized_bare: Callable[[str], Answer] = unauthorized_bare
    """In the form the reference Placement server has under this strategy."""
    identity: IdentityAddress | None = None
    """Where users log in, if tokens come from there."""


def auth_strategy(auth: str, config: CallersConfig) -> AuthStrategy:
    """The strategy of this name: `noauth2`, `token-file` or `keystone`.

    Raises:
        InvalidDescription: what it needs is missing or cannot be understood.
    """
    match auth:
        case "keystone":
            return _keystone(config)
        case "token-file" if config.token_file:
            return AuthStrategy(bounded(TokenFile(config.token_file)))
        case "noauth2":
            return AuthStrategy(bounded(noauth2))
        case _:
            raise InvalidDescription(f"auth {auth} lacks its settings")


def _keystone(config: CallersConfig) -> AuthStrategy:
    try:
        from moorage.http.keystone import Keystone  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise InvalidDescription(
            f"auth keystone needs the packages of the extra moorage[keystone]: {error}"
        ) from error
    made = Keystone(config.keystone)
    challenge = ("www-authenticate", made.challenge)
    return AuthStrategy(
        bounded(made),
        partial(unauthorized, challenge=(challenge,)),
        partial(unauthorized_by_keystone, challenge=(challenge,)),
        made.address,
    )
