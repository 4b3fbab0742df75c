"""The token file: one token a line, `- {"name": …, "hash": …, …}`: YAML, and almost JSON.

Written whole and moved into place, so that a server reading it meanwhile sees the old list or the
new one. Two commands at once take turns.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from moorage.domain.errors import DuplicateName, InvalidDescription, NotFound
from moorage.domain.period import Instant, format_instant, from_datetime, parse_instant
from moorage.tokens.secret import check_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_ROLE: Final = re.compile(r"[a-z0-9][a-z0-9._:-]{0,63}", re.ASCII)
_KEYS: Final = frozenset({"name", "hash", "user", "project", "roles", "expires"})
_PRIVATE: Final = 0o600
_HEAD: Final = "# Tokens of Moorage, by `moorage token`. Only hashes are here.\n"


@dataclass(frozen=True, slots=True)
class Token:
    """Who the bearer of a token is."""

    name: str
    hash: str = field(repr=False)
    user: str
    project: str
    roles: tuple[str, ...]
    """Lower case."""
    expires: Instant | None = None
    """The first instant at which it is worth nothing; None: never."""

    def good_at(self, now: Instant) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires


def read(path: Path) -> Mapping[str, Token]:
    """Every token by name, in the file's order.

    Raises:
        InvalidDescription: the file is no list of tokens; says which entry is wrong.
        OSError: the file cannot be read.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, LookupError) as error:
        mark = getattr(error, "problem_mark", None)  # the error's own words quote the line
        place = f" (line {mark.line + 1})" if mark else ""
        raise InvalidDescription(f"token file {path} is no YAML{place}") from None
    if found is not None and not isinstance(found, list):
        raise InvalidDescription(f"token file {path} is no list of tokens")
    tokens: dict[str, Token] = {}
    for number, entry in enumerate(found or [], 1):
        try:
            token = _token(entry)
        except InvalidDescription as error:
            raise InvalidDescription(f"token file {path}, entry {number}: {error}") from None
        if token.name in tokens:
            raise InvalidDescription(
                f"token file {path}, entry {number}: there is a {token.name} already"
            )
        tokens[token.name] = token
    return tokens


def add(path: Path, token: Token) -> None:
    """Put one more token at the end of the file, which is made if it is not there.

    Raises:
        DuplicateName: the name is taken.
        InvalidDescription: the token or the file is not well-formed.
    """
    _token(_entry(token))
    with _turn(path):
        tokens = dict(read(path)) if path.exists() else {}
        if token.name in tokens:
            raise DuplicateName("token", token.name)
        _write(path, {**tokens, token.name: token})


def remove(path: Path, name: str) -> None:
    """Take a token out of the file.

    Raises:
        NotFound: there is none of this name.
        InvalidDescription: the file is not well-formed.
    """
    with _turn(path):
        tokens = dict(read(path))
        if tokens.pop(name, None) is None:
            raise NotFound("token", name)
        _write(path, tokens)


def exposed(path: Path) -> bool:
    """Whether every user of the machine may read or write the file."""
    return bool(path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH))


def _token(entry: object) -> Token:
    if not isinstance(entry, dict):
        raise InvalidDescription("a token is a mapping")
    unknown = entry.keys() - _KEYS
    if unknown:
        raise InvalidDescription(f"unknown key {', '.join(sorted(map(str, unknown)))}")
    for key in ("name", "hash", "user", "project"):
        if not (isinstance(entry.get(key), str) and entry[key]):
            raise InvalidDescription(f"{key} must be a text", path=key)
    if not _NAME.fullmatch(entry["name"]):
        raise InvalidDescription("a name has letters, digits, . _ - (at most 64)", path="name")
    roles = entry.get("roles")
    if not (isinstance(roles, list) and roles and all(isinstance(one, str) for one in roles)):
        raise InvalidDescription("roles must be a list of role names", path="roles")
    names = tuple(dict.fromkeys(role.lower() for role in roles))
    for role in names:
        if not _ROLE.fullmatch(role):
            raise InvalidDescription(
                f"{role!r} is not the name of one role: letters, digits, . _ : - (at most 64);"
                " list several roles one by one",
                path="roles",
            )
    check_hash(entry["hash"])
    return Token(
        name=entry["name"],
        hash=entry["hash"],
        user=entry["user"],
        project=entry["project"],
        roles=names,
        expires=_instant(entry.get("expires")),
    )


def _instant(value: object) -> Instant | None:
    """YAML reads an unquoted time as a datetime, which is as good."""
    if value is None:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return from_datetime(value)
    if isinstance(value, str):
        return parse_instant(value)
    raise InvalidDescription("expires must be a time such as 2027-01-01T00:00:00Z", path="expires")


def _entry(token: Token) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": token.name,
        "hash": token.hash,
        "user": token.user,
        "project": token.project,
        "roles": list(token.roles),
    }
    if token.expires is not None:
        entry["expires"] = format_instant(token.expires)
    return entry


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Keep other commands out: a lock on the directory, since the file itself is replaced."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _write(path: Path, tokens: Mapping[str, Token]) -> None:
    lines = [f"- {json.dumps(_entry(token), ensure_ascii=False)}\n" for token in tokens.values()]
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_HEAD + "".join(lines))
            file.flush()
            os.fsync(file.fileno())
            _like(path, file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _like(path: Path, descriptor: int) -> None:
    """Give the new file the old one's owner and mode, so that the server can still read it."""
    if not path.exists():
        os.fchmod(descriptor, _PRIVATE)
        return
    old = path.stat()
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, old.st_uid, old.st_gid)
