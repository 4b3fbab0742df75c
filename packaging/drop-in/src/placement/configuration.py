"""Moorage's settings from placement.conf, read as it is, and from Moorage's own variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from moorage.domain.errors import BadConfiguration
from moorage.settings import configure, read
from moorage.settings.config_files import parse
from moorage.settings.placement_conversion import Outcome, convert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import URL

    from moorage.settings import Settings

_FILE: Final = "placement.conf"
_FOLDERS: Final = ("~/.placement", "~", "/etc/placement", "/etc")
"""Where oslo.config looks for it, in this order."""
_VARIABLE: Final = "OS_PLACEMENT_CONFIG_DIR"
_SECTION: Final = "placement_database"
_SUFFIX: Final = "_moorage"
_MOUNTS: Final = ["placement=/", "native=", "reservation=", "compute="]
"""The Placement API alone, where openstack-placement has it."""


@dataclass(frozen=True)
class DropInConfiguration:
    """What placement.conf says."""

    settings: Settings
    options: Sequence[str]
    """The lines of a moorage.conf that says the same."""
    old: URL
    """The database of openstack-placement."""
    new: URL
    """The ledger's database, on the same server unless the setting `database` names another."""
    left_out: Sequence[str]
    """A sentence for each option that has no equivalent and should be looked at."""


def find_files(named: Sequence[str] = ()) -> list[str]:
    """The configuration files: those named, or the first of the usual places.

    Raises:
        BadConfiguration: there is none.
    """
    folder = os.environ.get(_VARIABLE, "").strip()
    if named:
        return list(named)
    places = [Path(one).expanduser() / _FILE for one in ([folder] if folder else _FOLDERS)]
    for one in places:
        if one.is_file():
            return [str(one)]
    raise BadConfiguration(f"no {_FILE} in {', '.join(str(one.parent) for one in places)}")


def configuration(named: Sequence[str] = ()) -> DropInConfiguration:
    """The configuration of these files, or of placement.conf in one of its usual places.

    Raises:
        BadConfiguration: a file or a value cannot be used, or no database is named.
    """
    files = find_files(named)
    old = _connection(files)
    chosen = _chosen(files)
    new = derived(old) if chosen is None else _parsed(chosen)
    converted = convert(files, new.render_as_string(hide_password=False))
    lines = list(converted.lines())
    with TemporaryDirectory(prefix="moorage-placement-") as folder:
        file = Path(folder) / "moorage.conf"
        file.touch(mode=0o600)
        file.write_text("\n".join(lines), encoding="utf-8")
        settings = configure(read({"config_file": [str(file)], "mount": _MOUNTS}, os.environ))
    left_out = [f"{one.option}: {one.detail}" for one in converted.options if _matters(one.outcome)]
    return DropInConfiguration(settings, lines, old, new, left_out)


def _matters(outcome: Outcome) -> bool:
    return outcome is Outcome.BY_HAND


def _last(files: Sequence[str], section: str, name: str) -> str | None:
    found = [texts[-1] for file in files if (texts := parse(file).get(section, {}).get(name))]
    return found[-1] if found else None


def _connection(files: Sequence[str]) -> URL:
    said = _last(files, _SECTION, "connection")
    if not said:
        raise BadConfiguration(f"{', '.join(files)}: [{_SECTION}] connection is missing")
    return _parsed(said)


def _chosen(files: Sequence[str]) -> str | None:
    """The ledger's database, where somebody names it."""
    return os.environ.get("MOORAGE_DATABASE") or _last(files, "DEFAULT", "database")


def _parsed(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise BadConfiguration(f"[{_SECTION}] connection is no database URL") from error
    return url.set(drivername=url.get_backend_name())


def derived(old: URL) -> URL:
    """The ledger's database beside the old one: `placement_moorage` beside `placement`."""
    if old.get_backend_name() == "sqlite":
        file = Path(str(old.database))
        return old.set(database=str(file.with_name(f"{file.stem}{_SUFFIX}{file.suffix}")))
    return old.set(database=f"{old.database}{_SUFFIX}").difference_update_query(["charset"])
