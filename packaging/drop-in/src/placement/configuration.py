"""Moorage's settings from placement.conf, read as it is, and from Moorage's own variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from oslo_config import cfg
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from moorage.cli.config_convert import without_ignored_options
from moorage.domain.errors import BadConfiguration
from moorage.settings import Effective, configure, settle
from moorage.settings.placement_conversion import Outcome, convert, options_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import URL

    from moorage.settings import Settings
    from moorage.settings.placement_conversion import SaidOption

    Options = Mapping[str, Mapping[str, SaidOption]]

_PROJECT: Final = "placement"
_FILE: Final = "placement.conf"
_VARIABLE: Final = "OS_PLACEMENT_CONFIG_DIR"
_SECTION: Final = "placement_database"
_SUFFIX: Final = "_moorage"
_MOUNTS: Final = ["placement=/", "native=", "reservation=", "compute="]
"""The Placement API alone, where openstack-placement has it."""
DRIVERS: Final = {
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "postgresql": "postgresql+psycopg",
    "sqlite": "sqlite",
}
"""Kinds of databases, and the driver of each."""


@dataclass(frozen=True)
class NamedFiles:
    """The configuration files that a command line names, in its order; none: the usual ones."""

    sources: Sequence[tuple[str, str]] = ()
    """`file` or `dir`, and the path."""

    def has(self, kind: str) -> bool:
        """Whether any file, or any directory, is named."""
        return any(one == kind for one, _ in self.sources)


@dataclass(frozen=True)
class DropInConfiguration:
    """What placement.conf says."""

    effective: Effective
    """The values of the settings, and where each is said."""
    old: URL
    """The database of openstack-placement."""
    new: URL
    """The ledger's database, on the same server unless the setting `database` names another."""
    left_out: Sequence[str]
    """A sentence for each option that has no equivalent and should be looked at."""

    @property
    def settings(self) -> Settings:
        """The settings of the service; commands about the databases need none of them.

        Raises:
            BadConfiguration: they do not go together, or name what is not there.
        """
        return configure(self.effective)


def find_files(named: NamedFiles = NamedFiles()) -> list[str]:
    """The configuration files, in the order in which oslo.config reads them.

    The first `placement.conf` of the usual places (or that of `OS_PLACEMENT_CONFIG_DIR`), the
    files of the first `placement.conf.d` there, and what is named, which takes their place.

    Raises:
        BadConfiguration: there is none, or a named one is missing.
    """
    folder = os.environ.get(_VARIABLE, "").strip()
    found: list[str] = []
    if not named.has("file"):
        found += [str(Path(folder) / _FILE)] if folder else cfg.find_config_files(_PROJECT)
    if not named.has("dir"):
        usual = cfg.find_config_dirs(_PROJECT)
        found += [file for one in usual for file in _files_of(Path(one))]
    for kind, path in named.sources:
        if kind == "dir" and not Path(path).is_dir():
            raise BadConfiguration(f"--config-dir: there is no directory {path}")
        found += _files_of(Path(path)) if kind == "dir" else [path]
    if not found:
        raise BadConfiguration(
            f"no {_FILE} in ~/.placement, ~, /etc/placement, /etc: name one by --config-file, or"
            f" its directory by the variable {_VARIABLE}"
        )
    for file in found:
        if not Path(file).exists():
            raise BadConfiguration(f"there is no file {file}")
    return found


def _files_of(folder: Path) -> list[str]:
    return [str(one) for one in sorted(folder.glob("*.conf"))]


def configuration(named: NamedFiles = NamedFiles()) -> DropInConfiguration:
    """The configuration of these files, or of the usual ones, and of the environment.

    Raises:
        BadConfiguration: a file or a value cannot be used, or no database is named.
    """
    files = find_files(named)
    said = options_of(files, os.environ)
    old = _connection(said, files)
    new = _chosen(said) or derived(old)
    converted = convert(files, new.render_as_string(hide_password=False), os.environ)
    converted.require_valid()
    without_ignored_options(converted)
    effective = settle(converted.values(), {"mount": _MOUNTS}, os.environ)
    left_out = [
        f"{one.option}: {one.detail}" for one in converted.options if one.outcome is Outcome.BY_HAND
    ]
    return DropInConfiguration(effective, old, new, left_out)


def _connection(said: Options, files: Sequence[str]) -> URL:
    """The URL of the old database, with its further parameters as oslo.db appends them."""
    options = said.get(_SECTION, {})
    one = options.get("connection")
    if one is None or not one.text:
        raise BadConfiguration(f"{', '.join(files)}: [{_SECTION}] connection is missing")
    url = _parsed(one.text, f"{one.place}: [{_SECTION}] connection")
    if one.unresolved:
        raise BadConfiguration(
            f"{one.place}: [{_SECTION}] connection refers by $ to an option that is not there; a"
            " dollar is written as $$"
        )
    more = options.get("connection_parameters")
    return url.update_query_string(more.text, append=True) if more and more.text else url


def _chosen(said: Options) -> URL | None:
    """The ledger's database, where somebody names it."""
    if named := os.environ.get("MOORAGE_DATABASE"):
        return _parsed(named, "environment, MOORAGE_DATABASE")
    one = said.get("DEFAULT", {}).get("database")
    return _parsed(one.text, f"{one.place}: [DEFAULT] database") if one and one.text else None


def _parsed(text: str, place: str) -> URL:
    """The URL without its driver.

    Raises:
        BadConfiguration: it is none, or of a kind of database that Moorage does not read.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise BadConfiguration(f"{place} is no database URL") from error
    kind = url.get_backend_name()
    if kind not in DRIVERS:
        raise BadConfiguration(f"{place}: {kind} is none of {', '.join(DRIVERS)}")
    if not url.database:
        raise BadConfiguration(f"{place} names no database")
    return url.set(drivername=kind)


def derived(old: URL) -> URL:
    """The ledger's database beside the old one: `placement_moorage` beside `placement`."""
    if old.get_backend_name() == "sqlite":
        file = Path(str(old.database))
        return old.set(database=str(file.with_name(f"{file.stem}{_SUFFIX}{file.suffix}")))
    return old.set(database=f"{old.database}{_SUFFIX}").difference_update_query(["charset"])
