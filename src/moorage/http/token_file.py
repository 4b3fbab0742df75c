"""Authentication by a file of static tokens, for a service without Keystone.

The token's name finds its hash. A token once checked is believed for a minute, as long as its
entry in the file stays what it was: a revoked or changed one ends within a second.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy
from moorage.http.token_cache import TokenCache
from moorage.http.watched_file import WatchedFile
from moorage.tokens import listing, secret
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moorage.http.wsgi import Environ
    from moorage.tokens.listing import Token

_log = logging.getLogger(__name__)

_BELIEVED_SECONDS: Final = 60.0
_CHECKS_AT_A_TIME: Final = 2
"""Slow hashes one worker computes at the same time: guessing must not take all its processors."""
_TIMEOUT: Final = 5.0


class TokenFile:
    """The strategy.

    Raises:
        MoorageError: the file cannot be read or understood.
    """

    def __init__(self, path: str) -> None:
        self._file = WatchedFile(path, _read)
        self._good: TokenCache[Token] = TokenCache(seconds=_BELIEVED_SECONDS)
        self._bad: TokenCache[Token] = TokenCache(seconds=_BELIEVED_SECONDS)
        self._turns = threading.BoundedSemaphore(_CHECKS_AT_A_TIME)

    def __call__(self, environ: Environ, request_id: str) -> Caller | None:
        """The caller, or None without a token of the file.

        Raises:
            Busy: too many tokens are being checked already.
        """
        sent = environ.get("HTTP_X_AUTH_TOKEN")
        name = None if sent is None else secret.name_in(sent)
        token = None if name is None else self._file.current().get(name)
        if sent is None or token is None or not token.good_at(time.time_ns() // 1000):
            return None
        if not self._is_real(sent, token):
            return None
        return Caller(
            user_id=token.user,
            project_id=token.project,
            roles=frozenset(token.roles),
            request_id=request_id,
        )

    def _is_real(self, sent: str, token: Token) -> bool:
        if self._good.get(sent) == token:
            return True
        if self._bad.get(sent) == token:
            return False
        if not self._turns.acquire(timeout=_TIMEOUT):
            raise Busy("too many tokens are being checked")
        try:
            real = self._good.get(sent) == token or secret.matches(sent, token.hash)
        finally:
            self._turns.release()
        (self._good if real else self._bad).put(sent, token)
        if not real:
            _log.warning("authentication failed: wrong token for name %s", token.name)
        return real


def _read(path: Path) -> Mapping[str, Token]:
    tokens = listing.read(path)
    if listing.exposed(path):
        _log.warning("token file %s is readable by every user of this machine; run chmod 600", path)
    return tokens
