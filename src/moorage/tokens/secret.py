"""Making tokens and checking them against salted hashes.

A hash says how it was made, as `scrypt$N$r$p$salt$key` (RFC 7914) or
`pbkdf2-sha256$iterations$salt$key` (RFC 8018), salt and key in unpadded URL-safe base64. Costs are
bounded from both sides: a weak hash is refused, and none can keep a server busy for seconds.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

from moorage.domain.errors import InvalidDescription

PREFIX: Final = "moorage"

_SECRET_BYTES: Final = 32
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_N, _R, _P = 2**14, 8, 1
_LEAST_N: Final = 2**12
_MOST_MEMORY: Final = 2**28
"""Bytes; scrypt takes 128 * N * r of them."""
_MOST_PARALLEL: Final = 16
_ITERATIONS: Final = range(100_000, 5_000_001)


def new_token(name: str) -> str:
    """A token nobody can guess. It begins with its name, so that its hash is found at once."""
    return f"{PREFIX}.{name}.{secrets.token_urlsafe(_SECRET_BYTES)}"


def name_in(token: str) -> str | None:
    """The name a token begins with, or None if it has not the form."""
    head, _, rest = token.partition(".")
    name, _, secret = rest.rpartition(".")
    return name if head == PREFIX and name and secret else None


def hashed(token: str) -> str:
    """The hash to store, under a fresh salt."""
    salt = secrets.token_bytes(_SALT_BYTES)
    key = _scrypt(token, salt, (_N, _R, _P), _KEY_BYTES)
    return f"scrypt${_N}${_R}${_P}${_text(salt)}${_text(key)}"


def matches(token: str, stored: str) -> bool:
    """Whether the token is the one of this hash; takes as long for a wrong one.

    Raises:
        InvalidDescription: the hash has no known form, or costs beyond the bounds.
    """
    kind, numbers, salt, key = _taken_apart(stored)
    if kind == "scrypt":
        found = _scrypt(token, salt, numbers, len(key))
    else:
        found = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, numbers[0], len(key))
    return hmac.compare_digest(found, key)


def decoy(stored: str) -> str:
    """A hash that costs as much as this one to check, and that no token matches."""
    kind, *numbers, salt, key = stored.split("$")
    return "$".join((kind, *numbers, salt, _text(b"\0" * len(_bytes(key)))))


def check_hash(stored: str) -> None:
    """Refuse what `matches` would refuse, without the work.

    Raises:
        InvalidDescription: see `matches`.
    """
    _taken_apart(stored)


def _taken_apart(stored: str) -> tuple[str, tuple[int, ...], bytes, bytes]:
    kind, *parts = stored.split("$")
    try:
        numbers = tuple(int(one) for one in parts[:-2])
        salt, key = (_bytes(one) for one in parts[-2:])
    except ValueError:
        raise InvalidDescription(
            "a hash is scrypt$N$r$p$SALT$KEY or pbkdf2-sha256$ITERATIONS$SALT$KEY", path="hash"
        ) from None
    if not (_costs_fit(kind, numbers) and len(salt) >= _SALT_BYTES and len(key) >= _KEY_BYTES):
        raise InvalidDescription(
            "the hash is of an unknown kind, too weak, or too costly to check", path="hash"
        )
    return kind, numbers, salt, key


def _costs_fit(kind: str, numbers: tuple[int, ...]) -> bool:
    match kind, numbers:
        case "scrypt", (n, r, p):
            return (
                n >= _LEAST_N
                and n & (n - 1) == 0
                and r > 0
                and 128 * n * r <= _MOST_MEMORY
                and 0 < p <= _MOST_PARALLEL
            )
        case "pbkdf2-sha256", (iterations,):
            return iterations in _ITERATIONS
        case _:
            return False


def _scrypt(token: str, salt: bytes, costs: tuple[int, ...], length: int) -> bytes:
    n, r, p = costs
    # The library's own bound on memory counts a little more than the formula.
    most = _MOST_MEMORY + 2**24
    return hashlib.scrypt(token.encode(), salt=salt, n=n, r=r, p=p, maxmem=most, dklen=length)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
