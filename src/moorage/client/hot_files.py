"""A template on disk with the files it refers to, in the API's form: text by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from moorage.domain.errors import InvalidDescription
from moorage.heat.environment import read_environment
from moorage.heat.template import file_name, is_nested, named_files
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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


def gather(template: Path, text: str, environment: str | None) -> dict[str, str]:
    """The text of every file that the template, its nested ones or the environment refer to.

    Names are relative to the root template's directory, as Heat resolves them.

    Raises:
        InvalidDescription: one cannot be read, is not UTF-8 (or, of templates, not YAML), or there
            are too many.
    """
    waiting = [*named_files(text), *_registered(environment)]
    found: dict[str, str] = {}
    read: set[tuple[str, bool]] = set()
    while waiting:
        one = name, is_template = waiting.pop()
        if one in read:
            continue
        read.add(one)
        if len(read) > MAX_FILES:
            raise InvalidDescription(f"more than {MAX_FILES} files", path=name)
        found[name] = read_file(template.parent / name)
        if is_template:
            waiting += named_files(found[name], file=name)
    return found


def merged(environments: Iterable[tuple[str, str]]) -> str | None:
    """Several environments, (name, text) each, merged: later ones win entry by entry.

    Raises:
        InvalidDescription: one of them cannot be read as an environment.
    """
    sections: dict[str, dict[str, object]] = {}
    for name, text in environments:
        read_environment(text, name=name)
        plain = parse(text, name=name).plain()
        assert isinstance(plain, dict), "read_environment saw to it"
        for section, entries in plain.items():
            if isinstance(entries, dict):
                sections.setdefault(section, {}).update(entries)
    return yaml.safe_dump(sections, sort_keys=False, allow_unicode=True) if sections else None


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


def _registered(environment: str | None) -> list[tuple[str, bool]]:
    if environment is None:
        return []
    types = read_environment(environment).types.values()
    return [(file_name(str(one.value), of=""), True) for one in types if is_nested(one.value)]
