"""Authentication by a file of static tokens, for a service without Keystone.

The token's name finds its hash; a token whose name is not in the file is checked for as long. A
token once checked is believed for a minute, as long as its entry in the file stays what it was: a
revoked or changed one ends within a second.

Checking a token costs a slow hash or a call to Keystone; a client sends the same one with every
request. What is kept is a keyed digest under a key made at random in each process.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
import zlib
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from moorage.domain.errors import Busy
from moorage.http.response import GLOBAL_REQUEST_ID
from moorage.http.watched_file import WatchedFile
from moorage.tokens import listing, secret
from moorage.tokens.listing import Token
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moorage.http.wsgi import Environ

T = TypeVar("T")

_MOST: Final = 4096


class TokenCache(Generic[T]):
    """Results by token, each for at most `seconds`, at most `most` of them."""

    def __init__(self, *, seconds: float, most: int = _MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._key = secrets.token_bytes(32)
        self._found: dict[bytes, tuple[T, float]] = {}
        self._lock = threading.Lock()

    def get(self, token: str) -> T | None:
        """The cached result, unless it is too old."""
        found = self._found.get(self._digest(token))
        if found is None or found[1] <= time.monotonic():
            return None
        return found[0]

    def put(self, token: str, finding: T, seconds: float | None = None) -> None:
        """Cache a result, for `seconds` if that is shorter than usual."""
        now = time.monotonic()
        kept = self._seconds if seconds is None else min(seconds, self._seconds)
        with self._lock:
            if len(self._found) >= self._most:
                self._found = {one: it for one, it in self._found.items() if it[1] > now}
            if len(self._found) >= self._most:
                self._found.clear()
            self._found[self._digest(token)] = (finding, now + kept)

    def _digest(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._key).digest()


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
        listed = self._file.current()
        if sent is None or name is None or not listed:
            return None
        token = listed.get(name) or _decoy(name, listed)
        if not self._is_real(sent, token) or not token.good_at(time.time_ns() // 1000):
            return None
        return Caller(
            user_id=token.user,
            project_id=token.project,
            roles=frozenset(token.roles),
            request_id=request_id,
            global_request_id=environ.get(GLOBAL_REQUEST_ID),
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
        if not real and token.name:
            _log.warning("authentication failed: wrong token for name %s", token.name)
        return real


def _decoy(name: str, listed: Mapping[str, Token]) -> Token:
    """What a token is checked with whose name is not in the file: none matches it.

    It costs as much as one of those in the file, so that the time does not tell which names are.
    """
    chosen = zlib.crc32(name.encode("utf-8", "surrogateescape")) % len(listed)
    cost = listed[sorted(listed)[chosen]].hash
    return Token("", secret.decoy(cost), user="", project="", roles=(), expires=0)


def _read(path: Path) -> Mapping[str, Token]:
    tokens = listing.read(path)
    if listing.exposed(path):
        _log.warning("token file %s is readable by every user of this machine; run chmod 600", path)
    return tokens
