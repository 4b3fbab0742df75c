"""A short-lived cache of validated tokens that does not keep the tokens.

Checking a token costs a slow hash or a call to Keystone; a client sends the same one with every
request. What is kept is a keyed digest under a key made at random in each process.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from typing import Final, Generic, TypeVar

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
