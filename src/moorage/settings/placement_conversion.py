"""From openstack-placement's configuration files to one of this service.

Every option of theirs is in the result: as a setting, or with the reason why there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.options import SETTINGS
from moorage.options.oslo import UNUSED_SECTIONS
from moorage.options.placement import MATTERS, PLACEMENT_OPTIONS
from moorage.settings.config_files import FileValues, parse
from moorage.settings.effective_values import (
    KEYSTONE,
    SECTION,
    BadSetting,
    masked,
    shown_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SETTINGS: Final = {setting.name: setting for setting in SETTINGS}
_AUTH_SECTION: Final = "auth_section"
_CONNECTION: Final = ("placement_database", "connection")
_MOST: Final = "max_allocation_candidates"
_STRATEGY: Final = "allocation_candidates_generation_strategy"
_POLICY_SETTING: Final = "policy_file"
_POLICY_FILE: Final = "policy.yaml"
"""What oslo.policy reads beside the configuration file, if it is there."""
_POLICY_FOLDER: Final = "policy.d"
_OWN_SECTIONS: Final = ("api", "placement")
"""Sections whose options mean the same here, so that a value which is none here is none there."""
_VARIABLE: Final = re.compile(r"OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")
"""An environment variable that oslo.config reads as an option of a section."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Outcome(StrEnum):
    """What became of an option."""

    CARRIED = "carried"
    """It has the same name and value."""
    RENAMED = "renamed"
    """It has another name, or the value another form."""
    ADDED = "added"
    """A default there that is another one here."""
    NOT_NEEDED = "not needed"
    BY_HAND = "by hand"
    """Somebody has to do or decide something."""


@dataclass(frozen=True, slots=True)
class ConvertedOption:
    """One option of theirs."""

    option: str
    outcome: Outcome
    detail: str
    """The setting that it is, or why there is none."""
    invalid: bool = False
    """Whether its value is none that it may have, here or there."""


@dataclass
class Conversion:
    """The settings, and what became of each option."""

    files: Sequence[str]
    settings: dict[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    """Name -> texts, and the option that they come from."""
    keystone: dict[str, str] = field(default_factory=dict)
    options: list[ConvertedOption] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """Option as it is spelled -> the file that says it, or the environment."""

    def note(self, option: str, outcome: Outcome, detail: str, *, invalid: bool = False) -> None:
        """Add what became of an option."""
        self.options.append(ConvertedOption(option, outcome, detail, invalid))

    def require_valid(self) -> None:
        """Return if every value of an option is one that it may have.

        Raises:
            BadSetting: one is not; says where it is said.
        """
        for one in self.options:
            if one.invalid:
                raise BadSetting(one.option, self.places[one.option], one.detail)

    def values(self) -> FileValues:
        """The settings as a file of Moorage's would say them, each from where it really is."""
        sources = {name: self._place(option) for name, (_, option) in self.settings.items()}
        sources |= {
            f"{KEYSTONE}.{key}": self._place(f"[{KEYSTONE}] {key}") for key in self.keystone
        }
        return FileValues(
            files=list(self.files),
            texts={name: list(texts) for name, (texts, _) in self.settings.items()},
            sources=sources,
            sections={KEYSTONE: dict(self.keystone)},
        )

    def _place(self, option: str) -> str:
        place = self.places.get(option)
        return f"{place}, {option}" if place else option

    def lines(self) -> Iterator[str]:
        """The configuration file. It has the passwords of the original."""
        yield f"# Made by `moorage config convert` from {', '.join(self.files)}."
        yield "# Address, path and number of processes were the WSGI server's there; they are the"
        yield "# settings host, port, mount and workers here."
        yield f"[{SECTION}]"
        for name, (texts, option) in self.settings.items():
            yield f"# {option}"
            yield from (f"{name} = {_written(text)}" for text in texts)
        for one in self.options:
            if one.outcome in {Outcome.NOT_NEEDED, Outcome.BY_HAND}:
                yield f"# {one.outcome}: {one.option}: {one.detail}"
        if self.keystone:
            yield ""
            yield f"[{KEYSTONE}]"
            yield from (f"{key} = {_written(text)}" for key, text in self.keystone.items())


def _written(text: str) -> str:
    """A value as it is read back: oslo.config takes outer blanks and a pair of quotes off.

    Further lines are indented; nothing is taken off them but blanks.
    """
    first, *more = text.split("\n")
    if first != first.strip() or (first[:1] in {'"', "'"} and first[0] == first[-1]):
        first = f'"{first}"'
    return "\n    ".join((first, *more))


def convert(
    files: Sequence[str], database: str | None = None, environ: Mapping[str, str] = _NOTHING
) -> Conversion:
    """The conversion of these files, of which a later one wins, and of the environment.

    `database` is the URL of the ledger to be.

    Raises:
        BadSetting: a file cannot be read, or is no configuration file.
    """
    said = options_of(files, environ)
    found = Conversion(files)
    found.places = {
        f"[{section}] {name}": one.place
        for section, options in said.items()
        for name, one in options.items()
    }
    if database:
        found.settings["database"] = ((database,), "--database")
    credentials = said.get(KEYSTONE, {}).get(_AUTH_SECTION)
    for section, options in said.items():
        if section == KEYSTONE:
            _carry_keystone(found, said, options)
        elif credentials is not None and section == credentials.text:
            continue  # with those of Keystone
        elif section in _SECTIONS:
            for name, one in options.items():
                _convert(found, section, name, one, has_database=bool(database))
        elif section.startswith(UNUSED_SECTIONS):
            detail = "this service does not use that library"
            found.note(f"section [{section}]", Outcome.NOT_NEEDED, detail)
        else:
            detail = "openstack-placement 16.0.0 has no such section"
            found.note(f"section [{section}]", Outcome.BY_HAND, detail)
    _add_defaults(found, said, _folders(files))
    return found


_SECTIONS: Final = {section for section, _ in PLACEMENT_OPTIONS}


@dataclass(frozen=True, slots=True)
class SaidOption:
    """The last value of an option, and where it is said."""

    text: str
    file: str
    """The file; of a value from the environment the last of all files."""
    variable: str = ""
    """The environment variable that says it."""
    unresolved: bool = False
    """Whether it refers to something that is not said."""

    @property
    def place(self) -> str:
        """Where it is said: `file /etc/placement/placement.conf`."""
        return f"environment, {self.variable}" if self.variable else f"file {self.file}"


def options_of(
    files: Sequence[str], environ: Mapping[str, str] = _NOTHING
) -> dict[str, dict[str, SaidOption]]:
    """Section -> option -> value, with references (`$state_path`) replaced as oslo.config does.

    The environment wins, by variables such as `OS_PLACEMENT_DATABASE__CONNECTION`.

    Raises:
        BadSetting: a file cannot be read, or is no configuration file.
    """
    raw: dict[str, dict[str, SaidOption]] = {}
    for file in files:
        for section, options in parse(file).items():
            known = raw.setdefault(_section_named(section), {})
            for key, texts in options.items():
                known[key.replace("-", "_")] = SaidOption(texts[-1], file)
    for variable, text in environ.items():
        found = _VARIABLE.fullmatch(variable)
        if found is None:
            continue
        section, name = _section_named(found[1]), found[2].lower()
        if section == KEYSTONE or (section, name) in PLACEMENT_OPTIONS:
            file = files[-1] if files else ""
            raw.setdefault(section, {})[name] = SaidOption(text, file, variable)
    return {
        section: {key: _resolved(one, section, raw) for key, one in options.items()}
        for section, options in raw.items()
    }


def _section_named(name: str) -> str:
    """The section: oslo.config reads all but DEFAULT whatever the case of their letters."""
    return name if name == SECTION else name.lower()


class _References(Template):
    """References as oslo.config writes them: `$name`, `$section.name`, and `$$` for a dollar."""

    idpattern = r"[_a-z][\._a-z0-9]*"


def _resolved(
    said: SaidOption,
    section: str,
    raw: Mapping[str, Mapping[str, SaidOption]],
    within: frozenset[str] = frozenset(),
) -> SaidOption:
    """The option with its references replaced: by options of its section, else of DEFAULT.

    `within` are the references that lead here: one to itself is not resolved.
    """
    template = _References(said.text.replace(r"\$", "$$"))
    known: dict[str, str] = {}
    for name in template.get_identifiers():
        of, _, key = name.rpartition(".")
        places = [_section_named(of)] if of else [section, SECTION]
        for place in places:
            one = raw.get(place, {}).get(key)
            if one is None or name in within or name in known:
                continue
            found = _resolved(one, place, raw, within | {name})
            if not found.unresolved:
                known[name] = found.text
    missing = any(name not in known for name in template.get_identifiers())
    return replace(said, text=template.safe_substitute(known), unresolved=missing)


def _convert(
    found: Conversion, section: str, name: str, said: SaidOption, *, has_database: bool
) -> None:
    option = PLACEMENT_OPTIONS.get((section, name))
    spelled = f"[{section}] {name}"
    if option is None and section == SECTION and name in _SETTINGS:
        _set(found, name, [said.text], (section, name), said)
    elif option is None:
        detail = "openstack-placement 16.0.0 has no such option"
        found.note(spelled, Outcome.BY_HAND, detail)
    elif option.setting:
        try:
            texts = option.texts(said.text, _beside_which(found.files, option.setting, said))
            _set(found, option.setting, texts, (section, name), said)
        except ValueError as error:
            detail = f"{error}: {said.text!r}"
            found.note(spelled, Outcome.BY_HAND, detail, invalid=section in _OWN_SECTIONS)
    elif (section, name) == _CONNECTION and has_database:
        source = masked(said.text)
        detail = f"import it: moorage admin import placement --from {source}"
        found.note(spelled, Outcome.NOT_NEEDED, detail)
    else:
        matters = MATTERS.get((section, name), _never)(said.text)
        found.note(spelled, Outcome.BY_HAND if matters else Outcome.NOT_NEEDED, option.reason)


def _beside_which(files: Sequence[str], setting: str, said: SaidOption) -> Path:
    """The file beside which a relative path is: for a policy file any that was read, or its own."""
    if setting == _POLICY_SETTING:
        for folder in _folders(files):
            if (folder / said.text).is_file():
                return folder / Path(said.file).name
    return Path(said.file)


def _folders(files: Sequence[str]) -> list[Path]:
    """The directories of the files, in the order in which oslo.policy looks there."""
    return list(dict.fromkeys(Path(one).absolute().parent for one in reversed(files)))


def _never(_text: str) -> bool:
    return False


def _set(
    found: Conversion, name: str, texts: Sequence[str], place: tuple[str, str], said: SaidOption
) -> None:
    """Set a setting from one of their options, if its type accepts the value."""
    section, option = place
    spelled = f"[{section}] {option}"
    setting = _SETTINGS[name]
    try:
        for text in texts:
            setting.type(text)
    except ValueError as error:
        own = section in _OWN_SECTIONS or spelled == f"[{SECTION}] {name}"
        found.note(spelled, Outcome.BY_HAND, f"{name} {error}: {said.text!r}", invalid=own)
        return
    if said.unresolved:
        found.note(spelled, Outcome.BY_HAND, f"{name}: {said.text} refers to another option")
        return
    found.settings[name] = (texts, spelled)
    same = spelled == f"[{SECTION}] {name}" and list(texts) == [said.text]
    shown = ", ".join(masked(text) if setting.secret else text for text in texts)
    found.note(spelled, Outcome.CARRIED if same else Outcome.RENAMED, f"{name} = {shown}")


def _carry_keystone(
    found: Conversion,
    said: Mapping[str, Mapping[str, SaidOption]],
    options: Mapping[str, SaidOption],
) -> None:
    """Carry all, with those of the section that `auth_section` names."""
    named = options.get(_AUTH_SECTION)
    if named is not None and named.text != KEYSTONE:
        for key, one in said.get(named.text, {}).items():
            found.keystone[key] = one.text
            detail = f"[{KEYSTONE}] {key} = {shown_option(key, one.text)}"
            found.note(f"[{named.text}] {key}", Outcome.RENAMED, detail)
    for key, one in options.items():
        spelled = f"[{KEYSTONE}] {key}"
        if key == _AUTH_SECTION:
            detail = f"the options of [{one.text}] are in [{KEYSTONE}]"
            found.note(spelled, Outcome.NOT_NEEDED, detail)
            continue
        found.keystone[key] = one.text
        found.note(spelled, Outcome.CARRIED, f"{key} = {shown_option(key, one.text)}")


def _add_defaults(
    found: Conversion, said: Mapping[str, Mapping[str, SaidOption]], folders: Sequence[Path]
) -> None:
    """Say what is a default there and none here."""
    there = "the default there"
    if "auth" not in found.settings:
        found.settings["auth"] = (("keystone",), "[api] auth_strategy, by default")
        found.note("[api] auth_strategy", Outcome.ADDED, f"auth = keystone, {there}")
    if "enforce_new_defaults" not in found.settings:
        found.settings["enforce_new_defaults"] = (
            ("true",),
            "[oslo_policy] enforce_new_defaults, by default",
        )
        detail = f"enforce_new_defaults = true, {there}"
        found.note("[oslo_policy] enforce_new_defaults", Outcome.ADDED, detail)
    if _MOST in found.settings and _STRATEGY not in found.settings:
        found.settings[_STRATEGY] = (("depth-first",), f"[placement] {_STRATEGY}, by default")
        found.note(f"[placement] {_STRATEGY}", Outcome.ADDED, f"{_STRATEGY} = depth-first, {there}")
    if _MOST not in found.settings:
        detail = f"{_MOST} = auto, the default here, leaves out no host; -1 there: unlimited"
        found.note(f"[placement] {_MOST}", Outcome.NOT_NEEDED, detail)
    rules = next((one / _POLICY_FILE for one in folders if (one / _POLICY_FILE).is_file()), None)
    if _POLICY_SETTING not in found.settings and rules is not None:
        found.settings[_POLICY_SETTING] = ((str(rules),), "[oslo_policy] policy_file, by default")
        detail = f"policy_file = {rules}, which is read by default there"
        found.note("[oslo_policy] policy_file", Outcome.ADDED, detail)
    more = next((one / _POLICY_FOLDER for one in folders if (one / _POLICY_FOLDER).is_dir()), None)
    unsaid = "policy_dirs" not in said.get("oslo_policy", {})
    if unsaid and more is not None and any(more.glob("*")):
        reason = PLACEMENT_OPTIONS["oslo_policy", "policy_dirs"].reason
        found.note("[oslo_policy] policy_dirs", Outcome.BY_HAND, f"{more}: {reason}")
    if "database" not in found.settings:
        found.note("database", Outcome.BY_HAND, "name the ledger's database: --database URL")
