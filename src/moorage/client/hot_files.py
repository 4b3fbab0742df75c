"""A template on disk with the files it refers to, in the API's form: text by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from moorage.domain.errors import InvalidDescription
from moorage.heat.environment import read_environment
from moorage.heat.file_names import is_url
from moorage.heat.resource_registry import registered_files
from moorage.heat.template import named_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_FILES: Final = 500


def read_file(path: Path) -> str:
    """A file's text.

    Raises:
        InvalidDescription: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDescription(f"{path} is not UTF-8 text: {error}", path=str(path)) from error
    except OSError as error:
        raise InvalidDescription(f"cannot read {path}: {error.strerror}", path=str(path)) from error


@dataclass(frozen=True, slots=True)
class GatheredFiles:
    """A template's files by name, and the names of its environments among them, in their order."""

    files: Mapping[str, str]
    environments: tuple[str, ...]


def gather(template: Path, text: str, environments: Sequence[Path] = ()) -> GatheredFiles:
    """The text of every environment, and of every file that they and the template refer to.

    Names are relative to the root template's directory. Files that a URL of another scheme than
    `file` names are left out: they are needed only where something about places hangs on them.

    Raises:
        InvalidDescription: one cannot be read, is not UTF-8 (or, of templates and environments, not
            YAML), or there are too many.
    """
    found: dict[str, str] = {}
    waiting = [*named_files(text)]
    names = []
    for path in environments:
        name = os.path.relpath(path, template.parent)
        found[name] = read_file(path)
        names.append(name)
        registry = read_environment(found[name], name=name).registry
        waiting += ((one, True) for one in registered_files(registry))
    read: set[tuple[str, bool]] = set()
    while waiting:
        one = name, is_template = waiting.pop()
        if one in read:
            continue
        read.add(one)
        if len(read) > MAX_FILES:
            raise InvalidDescription(f"more than {MAX_FILES} files", path=name)
        path_of = _path(name, template.parent)
        if path_of is None:
            continue
        found[name] = read_file(path_of)
        if is_template:
            waiting += named_files(found[name], file=name)
    return GatheredFiles(found, tuple(names))


def _path(name: str, directory: Path) -> Path | None:
    """Where a file is; None: not on this machine."""
    if not is_url(name):
        return directory / name
    parts = urlsplit(name)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def parameters(options: Iterable[str]) -> Mapping[str, str]:
    """`NAME=VALUE` options in the API's form.

    Raises:
        InvalidDescription: an option without an equals sign or name.
    """
    found = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise InvalidDescription(f"a parameter is NAME=VALUE, not {option!r}", path="-P")
        found[name] = value
    return found


def file_parameters(options: Iterable[str]) -> Mapping[str, str]:
    """`NAME=FILE` options in the API's form: the values are the files' texts.

    Raises:
        InvalidDescription: an option without an equals sign or name, or a file that cannot be read.
    """
    return {name: read_file(Path(value)) for name, value in parameters(options).items()}
