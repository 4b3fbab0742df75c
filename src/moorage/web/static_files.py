"""The page's files, compressed in memory once, under a digest of all of them.

A path names a file of this very release, so that browsers may keep it for ever. The modules import
each other by relative paths and so stay under one digest.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os.path import normpath
from pathlib import Path, PurePosixPath
from string import Template
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOME: Final = Path(__file__).parent
INDEX: Final = "index.html"

_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
"""What is served; the rest of the folder is program."""
_DIGITS: Final = 20
_ENTRY: Final = "main.js"
_IMPORT: Final = re.compile(r'\b(?:from|import)\s*"(\.{1,2}/[^"]+)"')
"""Of modules that are always loaded; a call `import(…)` loads one when it is needed."""


@dataclass(frozen=True)
class StaticFile:
    """One file as it is sent."""

    content_type: str
    plain: bytes
    etag: str

    @cached_property
    def packed(self) -> bytes:
        """The file in gzip, or as it is where that is no shorter."""
        made = gzip.compress(self.plain, mtime=0)
        return made if len(made) < len(self.plain) else self.plain


@dataclass(frozen=True)
class StaticFiles:
    """All files."""

    digest: str
    files: Mapping[str, StaticFile]
    """By path, with `/` between folders."""
    template: Template
    """`index.html`, with names after dollar signs."""

    @classmethod
    def read(cls, home: Path = HOME) -> StaticFiles:
        """The files of a folder."""
        found = {
            path.relative_to(home).as_posix(): path.read_bytes()
            for path in sorted(home.rglob("*"))
            if path.is_file() and path.suffix in _TYPES
        }
        template = _with_preloads((home / INDEX).read_text(encoding="utf-8"), _modules(found))
        together = hashlib.sha256(template.encode())
        for name, content in found.items():
            together.update(f"\n{name} {len(content)}\n".encode() + content)
        return cls(
            together.hexdigest()[:_DIGITS],
            {
                name: static_file(content, _TYPES[Path(name).suffix])
                for name, content in found.items()
            },
            Template(template),
        )

    def index(self, values: Mapping[str, str], *, embedded: bool) -> StaticFile:
        """The page itself, with these values in its template."""
        text = self.template.substitute({name: escape(value) for name, value in values.items()})
        if embedded:
            text = text.replace("<html ", "<html data-embed ", 1)
        return static_file(text.encode(), "text/html; charset=utf-8")


def _modules(files: Mapping[str, bytes]) -> list[str]:
    """The modules that the page needs in any case, in the order in which they are found."""
    found, waiting = [], [_ENTRY]
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in files:
            continue
        found.append(name)
        folder = PurePosixPath(name).parent
        named = _IMPORT.findall(files[name].decode())
        waiting += [normpath(folder / one).replace("\\", "/") for one in named]
    return found


def _with_preloads(template: str, modules: Sequence[str]) -> str:
    """The page's text, which names all its modules: browsers read them at once, not one by one."""
    links = (f'<link rel="modulepreload" href="$files/{escape(one)}">' for one in modules)
    return template.replace("$preloads", "\n".join(links))


def static_file(content: bytes, content_type: str) -> StaticFile:
    """A file with this content."""
    return StaticFile(content_type, content, hashlib.sha256(content).hexdigest()[:_DIGITS])
