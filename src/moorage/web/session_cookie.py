"""The cookie of a browser's session: a token with its session id, encrypted and authenticated.

Fernet of the library `cryptography`. Any worker and replica with the same key reads it; nothing is
kept in memory. The library is imported with the first cookie: most processes never see one.
"""

from __future__ import annotations

import base64
import time
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.domain.errors import InvalidDescription
from moorage.http.auth import SessionRefused
from moorage.http.proxy_headers import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cryptography.fernet import MultiFernet

    from moorage.http.wsgi import Environ

LONGEST: Final = 4096
"""Characters of name and value of a cookie that every browser keeps."""
_NAME: Final = "moorage_session"
_KEY_BYTES: Final = 32


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What the cookie holds."""

    id: str
    """Random; the page sends it with every request, so that a later login is noticed."""
    auth: str
    """The strategy whose credentials these are."""
    headers: dict[str, str]
    """The credentials, as headers in a WSGI environ."""
    ends: int
    """Seconds since the epoch."""
    user: str | None = None
    """The user's name, where it is not the id."""
    project: str | None = None
    issued: bool = False
    """Whether the token was issued for this session alone, and ends with it."""


_DECODER: Final = msgspec.json.Decoder(Session)


class SessionCookies:
    """Seals and opens the cookies of one authentication strategy."""

    def __init__(self, keys: Callable[[], tuple[bytes, ...]], auth: str) -> None:
        """The first of the keys seals; all of them open."""
        self._keys = keys
        self._auth = auth

    def seal(self, environ: Environ, session: Session) -> str:
        """The `Set-Cookie` header with this session.

        Raises:
            SessionRefused: the token is too long for a cookie.
        """
        value = _fernet(self._keys()).encrypt(msgspec.json.encode(session)).decode("ascii")
        name = _name(environ)
        if len(name) + len(value) > LONGEST:
            raise SessionRefused(
                HTTPStatus.BAD_REQUEST,
                "session.token_too_long",
                "the token is too long for a browser's cookie: take one of a kind such as Fernet",
            )
        return f"{name}={value}; {_attributes(environ)}"

    def clear(self, environ: Environ) -> str:
        """The `Set-Cookie` header that ends the session."""
        return f"{_name(environ)}=; Max-Age=0; {_attributes(environ)}"

    def open(self, environ: Environ) -> Session | None:
        """The session of a request; None without one that is valid now."""
        name = _name(environ)
        for part in environ.get("HTTP_COOKIE", "").split(";"):
            key, _, value = part.strip().partition("=")
            if key == name and 0 < len(value) <= LONGEST:
                found = self._read(value)
                if found is not None:
                    return found
        return None

    def _read(self, value: str) -> Session | None:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - see the module

        try:
            plain = _fernet(self._keys()).decrypt(value.encode("ascii"))
            found = _DECODER.decode(plain)
        except (InvalidToken, UnicodeEncodeError, msgspec.DecodeError):
            return None
        return found if found.auth == self._auth and found.ends > time.time() else None


def keys_in_file(path: Path) -> tuple[bytes, ...]:
    """The keys of a file, one a line.

    Raises:
        InvalidDescription: there is none, or one is not 32 bytes in base64.
    """
    lines = [line.strip() for line in path.read_text(encoding="ascii", errors="replace").split()]
    keys = []
    for number, line in enumerate(lines, start=1):
        try:
            raw = base64.b64decode(line.replace("-", "+").replace("_", "/"), validate=True)
        except ValueError:
            raw = b""
        if len(raw) != _KEY_BYTES:  # the line is a secret: not shown
            raise InvalidDescription(
                f"session_key_file {path}: key {number} is not {_KEY_BYTES} bytes in base64, as"
                f" openssl rand -base64 {_KEY_BYTES} makes them"
            )
        keys.append(base64.urlsafe_b64encode(raw))
    if not keys:
        raise InvalidDescription(f"session_key_file {path}: it has no key")
    return tuple(keys)


@lru_cache(maxsize=8)
def _fernet(keys: tuple[bytes, ...]) -> MultiFernet:
    from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - see the module

    return MultiFernet([Fernet(key) for key in keys])


def _name(environ: Environ) -> str:
    """The cookie's name; with the port in it, since browsers send cookies to all ports of a host.

    Two services on one machine, such as simulations, would end each other's sessions.
    """
    port = environ.get("HTTP_HOST", "").rpartition(":")[2]
    return f"{_NAME}_{port}" if port.isascii() and port.isdigit() else _NAME


def _attributes(environ: Environ) -> str:
    secure = "; Secure" if environ["wsgi.url_scheme"] == "https" else ""
    return f"Path={environ.get(PREFIX, '')}/; HttpOnly; SameSite=Strict{secure}"
