"""Names of files among a template's files: relative to the root template, or URLs.

Heat's client turns every name into an absolute URL before it sends a template; the command of
Moorage and people who write requests use names relative to the root template. Both are read.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

NESTED: Final = (".yaml", ".template")
"""What the type of a nested template ends with."""
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<host>[^/]*)(?P<path>.*)", re.DOTALL
)


def is_nested(type_name: object) -> bool:
    """Whether a resource type names a nested template's file."""
    return isinstance(type_name, str) and type_name.endswith(NESTED)


def is_url(name: str) -> bool:
    """Whether a file's name is a URL, such as Heat's client writes."""
    return _URL.fullmatch(name) is not None


def place_in(url: str) -> str:
    """Host and path of a URL, as one path."""
    found = _URL.fullmatch(url)
    return "" if found is None else f"{found['host']}{found['path']}".lstrip("/")


def file_name(written: str, *, of: str) -> str:
    """The name of a file, as the file `of` refers to it: a URL, or relative to the root."""
    if is_url(written):
        return written
    found = _URL.fullmatch(of)
    if found is not None:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(found["path"]), written))
        return f"{found['scheme']}{found['host']}{path}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(of), written))


def find_file(written: str, *, of: str, files: Container[str]) -> str:
    """The name of a file among `files`; as it is written, if only that one is there.

    Heat itself looks a name up as it is written, whatever template it is in.
    """
    name = file_name(written, of=of)
    return written if name not in files and written in files else name
