"""From openstack-placement's configuration files to one of this service.

Every option of theirs is in the result: as a setting, or with the reason why there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final

from moorage.options import SETTINGS
from moorage.options.oslo import UNUSED_SECTIONS
from moorage.options.placement import MATTERS, PLACEMENT_OPTIONS
from moorage.settings.config_files import parse
from moorage.settings.effective_values import KEYSTONE, SECTION, masked, shown_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SETTINGS: Final = {setting.name: setting for setting in SETTINGS}
_AUTH_SECTION: Final = "auth_section"
_CONNECTION: Final = ("placement_database", "connection")
_MOST: Final = "max_allocation_candidates"
_STRATEGY: Final = "allocation_candidates_generation_strategy"
_POLICY_FILE: Final = "policy.yaml"
"""What oslo.policy reads beside the configuration file, if it is there."""
_POLICY_FOLDER: Final = "policy.d"


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


@dataclass
class Conversion:
    """The settings, and what became of each option."""

    files: Sequence[str]
    settings: dict[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    """Name -> texts, and the option that they come from."""
    keystone: dict[str, str] = field(default_factory=dict)
    options: list[ConvertedOption] = field(default_factory=list)

    def note(self, option: str, outcome: Outcome, detail: str) -> None:
        """Add what became of an option."""
        self.options.append(ConvertedOption(option, outcome, detail))

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


def convert(files: Sequence[str], database: str | None = None) -> Conversion:
    """The conversion of these files, of which a later one wins.

    `database` is the URL of the ledger to be.

    Raises:
        BadSetting: a file cannot be read, or is no configuration file.
    """
    said = _said(files)
    found = Conversion(files)
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
    _add_defaults(found, said, Path(files[0]).absolute().parent)
    return found


_SECTIONS: Final = {section for section, _ in PLACEMENT_OPTIONS}


@dataclass(frozen=True, slots=True)
class _Said:
    """The last value of an option, and the file that says it."""

    text: str
    file: str
    unresolved: bool = False
    """Whether it refers to something that the files do not say."""


def _said(files: Sequence[str]) -> dict[str, dict[str, _Said]]:
    """Section -> option -> value, with references (`$state_path`) replaced as oslo.config does."""
    raw: dict[str, dict[str, tuple[str, str]]] = {}
    for file in files:
        for section, options in parse(file).items():
            known = raw.setdefault(section, {})
            known |= {key.replace("-", "_"): (texts[-1], file) for key, texts in options.items()}
    plain = {key: text for key, (text, _) in raw.get(SECTION, {}).items()}
    return {
        section: {key: _resolved(text, file, plain) for key, (text, file) in options.items()}
        for section, options in raw.items()
    }


def _resolved(text: str, file: str, plain: Mapping[str, str]) -> _Said:
    found = Template(text).safe_substitute(plain)
    missing = set(Template(text).get_identifiers()) - plain.keys()
    return _Said(found, file, unresolved=bool(missing))


def _convert(
    found: Conversion, section: str, name: str, said: _Said, *, has_database: bool
) -> None:
    option = PLACEMENT_OPTIONS.get((section, name))
    spelled = f"[{section}] {name}"
    if option is None and section == SECTION and name in _SETTINGS:
        _set(found, name, [said.text], spelled, said)
    elif option is None:
        detail = "openstack-placement 16.0.0 has no such option"
        found.note(spelled, Outcome.BY_HAND, detail)
    elif option.setting:
        try:
            _set(found, option.setting, option.texts(said.text, Path(said.file)), spelled, said)
        except ValueError as error:
            found.note(spelled, Outcome.BY_HAND, f"{error}: {said.text!r}")
    elif (section, name) == _CONNECTION and has_database:
        source = masked(said.text)
        detail = f"import it: moorage admin import placement --from {source}"
        found.note(spelled, Outcome.NOT_NEEDED, detail)
    else:
        matters = MATTERS.get((section, name), _never)(said.text)
        found.note(spelled, Outcome.BY_HAND if matters else Outcome.NOT_NEEDED, option.reason)


def _never(_text: str) -> bool:
    return False


def _set(found: Conversion, name: str, texts: Sequence[str], spelled: str, said: _Said) -> None:
    """Set a setting from one of their options, if its type accepts the value."""
    setting = _SETTINGS[name]
    try:
        for text in texts:
            setting.type(text)
    except ValueError as error:
        found.note(spelled, Outcome.BY_HAND, f"{name} {error}: {said.text!r}")
        return
    if said.unresolved:
        found.note(spelled, Outcome.BY_HAND, f"{name}: {said.text} refers to another option")
        return
    found.settings[name] = (texts, spelled)
    same = spelled == f"[{SECTION}] {name}" and list(texts) == [said.text]
    shown = ", ".join(masked(text) if setting.secret else text for text in texts)
    found.note(spelled, Outcome.CARRIED if same else Outcome.RENAMED, f"{name} = {shown}")


def _carry_keystone(
    found: Conversion, said: Mapping[str, Mapping[str, _Said]], options: Mapping[str, _Said]
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


def _add_defaults(found: Conversion, said: Mapping[str, Mapping[str, _Said]], folder: Path) -> None:
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
    rules = folder / _POLICY_FILE
    if "policy_file" not in found.settings and rules.is_file():
        found.settings["policy_file"] = ((str(rules),), "[oslo_policy] policy_file, by default")
        detail = f"policy_file = {rules}, which is read by default there"
        found.note("[oslo_policy] policy_file", Outcome.ADDED, detail)
    more = folder / _POLICY_FOLDER
    if "policy_dirs" not in said.get("oslo_policy", {}) and any(more.glob("*")):
        reason = PLACEMENT_OPTIONS["oslo_policy", "policy_dirs"].reason
        found.note("[oslo_policy] policy_dirs", Outcome.BY_HAND, f"{more}: {reason}")
    if "database" not in found.settings:
        found.note("database", Outcome.BY_HAND, "name the ledger's database: --database URL")
