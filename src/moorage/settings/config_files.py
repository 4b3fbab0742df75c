"""The configuration files: which are read, and what they say together.

Parsing is oslo.config's. A later file wins over an earlier one; values of settings that may be
repeated add up. Values are taken literally (no `$` substitution), because database passwords
contain anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.options import SETTINGS
from moorage.options.oslo import LIBRARY_OPTIONS, UNUSED_SECTIONS
from moorage.settings.effective_values import KEYSTONE, NOVA, SECTION, BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.options.kinds import Setting
    from moorage.options.oslo import LibraryOption

CONFIG_FILES: Final = ("moorage.conf", "/etc/moorage/moorage.conf")
"""Looked for in this order when none is named; the first that exists is read, and after it the
files of the directory of its name with `.d`, which may also be there alone."""
PASSED_ON: Final = (KEYSTONE, NOVA)
"""Sections that other libraries read."""
_AUTH_SECTION: Final = "auth_section"
"""An option of keystoneauth1: another section has the credentials."""
_OF_PLACEMENT: Final = ("placement", "placement_database", "api", "workarounds")

_LIBRARY: Final = {(one.section, one.name): one for one in LIBRARY_OPTIONS}
_LIBRARY_SECTIONS: Final = {one.section for one in LIBRARY_OPTIONS} - {SECTION}
_SETTINGS: Final = {setting.name: setting for setting in SETTINGS}


@dataclass
class FileValues:
    """What the files say, before values are read."""

    files: list[str] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Setting -> its texts; the last one counts unless it may be repeated."""
    sources: dict[str, str] = field(default_factory=dict)
    """Setting, or `section.option` of a section passed on -> where it was said."""
    sections: dict[str, dict[str, str]] = field(default_factory=dict)
    """Sections passed on."""
    ignored: list[str] = field(default_factory=list)
    """A sentence for each option and section without a meaning for this service."""


def find_files(
    given: Mapping[str, Any], environ: Mapping[str, str], places: Sequence[str]
) -> list[str]:
    """Paths of the files to read, in order: those named, then those of named directories.

    Raises:
        BadSetting: one that is named does not exist.
    """
    for kind, names, directories in (
        ("command line, --", given.get("config_file"), given.get("config_dir")),
        (
            "environment, MOORAGE_",
            environ.get("MOORAGE_CONFIG_FILE"),
            environ.get("MOORAGE_CONFIG_DIR"),
        ),
    ):
        if names or directories:
            return [*_named(kind, _several(names)), *_in_named(kind, _several(directories))]
    for place in places:
        folder = Path(f"{place}.d")
        found = [str(Path(place).absolute())] if Path(place).is_file() else []
        if found or folder.is_dir():
            return [*found, *_files_of(folder)]
    return []


def _several(names: str | Sequence[str] | None) -> Sequence[str]:
    """One name, or several: separated by commas in the environment."""
    if isinstance(names, str):
        return [one.strip() for one in names.split(",") if one.strip()]
    return names or ()


def _place(kind: str, option: str) -> str:
    return kind + (option.upper().replace("-", "_") if kind.startswith("environment") else option)


def _named(kind: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if not Path(name).is_file():
            source = _place(kind, "config-file")
            raise BadSetting("config_file", source, f"there is no file {name}")
        yield str(Path(name).absolute())


def _in_named(kind: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if not Path(name).is_dir():
            source = _place(kind, "config-dir")
            raise BadSetting("config_dir", source, f"there is no directory {name}")
        yield from _files_of(Path(name))


def _files_of(folder: Path) -> list[str]:
    return [str(one.absolute()) for one in sorted(folder.glob("*.conf")) if one.is_file()]


def read_files(files: Sequence[str]) -> FileValues:
    """What these files say; a later one wins.

    Raises:
        BadSetting: a file cannot be read, or says something that nobody would read.
    """
    found = FileValues(list(files))
    parsed = [(file, parse(file)) for file in files]
    credentials = {
        texts[-1]
        for _, sections in parsed
        for name in PASSED_ON
        for key, texts in sections.get(name, {}).items()
        if key == _AUTH_SECTION
    }
    passed_on = {*PASSED_ON, *credentials}
    for file, sections in parsed:
        _add_settings(found, file, sections)
        for name, options in sections.items():
            if name in passed_on:
                found.sections.setdefault(name, {}).update(_last(options))
                found.sources |= {f"{name}.{key}": f"file {file}" for key in options}
            elif name != SECTION and name not in _LIBRARY_SECTIONS:
                found.ignored.append(_unused(name, file))
    for name in PASSED_ON:
        _join_credentials(found, name)
    return found


def parse(file: str) -> dict[str, dict[str, list[str]]]:
    """Section -> option -> its values, in order.

    Raises:
        BadSetting: the file cannot be read, or is no configuration file.
    """
    from oslo_config import cfg  # noqa: PLC0415 - slow to import, and only for files

    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(file, sections).parse()
    except (cfg.ParseError, OSError, UnicodeError) as error:
        raise BadSetting("config_file", f"file {file}", str(error)) from error
    return sections


def _last(options: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {key: texts[-1] for key, texts in options.items()}


def _unused(section: str, file: str) -> str:
    """The sentence about a section of a library that has no part here.

    Raises:
        BadSetting: nobody knows the section.
    """
    if section.startswith(UNUSED_SECTIONS):
        return f"section [{section}] (file {file}): this service does not use that library"
    if section in _OF_PLACEMENT:
        problem = (
            "this is a section of openstack-placement; `moorage config convert` makes a"
            " configuration file of its own"
        )
    else:
        known = sorted({KEYSTONE, NOVA, *_LIBRARY_SECTIONS})
        problem = f"the only sections are [{SECTION}], " + ", ".join(f"[{one}]" for one in known)
    raise BadSetting(section, f"file {file}", problem)


def _add_settings(
    found: FileValues, file: str, sections: Mapping[str, Mapping[str, Sequence[str]]]
) -> None:
    """Add what one file says of settings, by their own names or by a library's."""
    own: dict[str, tuple[Sequence[str], str]] = {}
    for section in (SECTION, *sorted(_LIBRARY_SECTIONS)):
        for key, texts in sections.get(section, {}).items():
            spelled = key if section == SECTION else f"[{section}] {key}"
            name = key.replace("-", "_")
            if section == SECTION and name in _SETTINGS:
                meant = _SETTINGS[name]
            else:
                option = _library_option(section, name, spelled, file)
                if not option.setting:
                    found.ignored.append(f"{spelled} (file {file}): {option.reason}")
                    continue
                meant = _SETTINGS[option.setting]
                texts = _in_our_words(option, texts, spelled, file)  # noqa: PLW2901 - the same, translated
            if meant.name in own:
                raise BadSetting(
                    meant.name, f"file {file}", f"{own[meant.name][1]} and {spelled} are the same"
                )
            own[meant.name] = (texts, spelled)
    for name, (texts, spelled) in own.items():
        _set(found, _SETTINGS[name], texts)
        found.sources[name] = f"file {file}" + (f", {spelled}" if spelled != name else "")


def _set(found: FileValues, setting: Setting, texts: Sequence[str]) -> None:
    before = found.texts.get(setting.name, []) if setting.multi else []
    found.texts[setting.name] = [*before, *texts]


def _library_option(section: str, name: str, spelled: str, file: str) -> LibraryOption:
    option = _LIBRARY.get((section, name))
    if option is None:
        raise BadSetting(spelled, f"file {file}", "there is no such setting")
    if option.refused:
        raise BadSetting(spelled, f"file {file}", option.reason)
    return option


def _in_our_words(
    option: LibraryOption, texts: Sequence[str], spelled: str, file: str
) -> Sequence[str]:
    try:
        return option.texts(texts[-1], Path(file))
    except ValueError as error:
        raise BadSetting(spelled, f"file {file}", f"{error}: {texts[-1]!r}") from error


def _join_credentials(found: FileValues, name: str) -> None:
    """Put the options of another section into the one that names it by `auth_section`.

    Raises:
        BadSetting: there is no such section.
    """
    section = found.sections.get(name, {})
    other = section.pop(_AUTH_SECTION, None)
    if other is None or other == name:
        return
    source = found.sources.pop(f"{name}.{_AUTH_SECTION}")
    if other not in found.sections:
        raise BadSetting(f"[{name}] {_AUTH_SECTION}", source, f"there is no section [{other}]")
    found.sections[name] = {**found.sections[other], **section}
    for key in found.sections[other]:
        found.sources.setdefault(f"{name}.{key}", found.sources[f"{other}.{key}"])
