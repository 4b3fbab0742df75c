"""Every setting: read once from command line, environment and file, turned into frozen configs.

The table in `moorage.options` is the whole truth: an option of `moorage serve`, a key of the
configuration file and an environment variable `MOORAGE_<NAME>` each, in this precedence: command
line, environment, file, default. Parsing is oslo.config's, on a `ConfigOpts` of our own; values are
taken literally (no `$` substitution), because database passwords contain anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oslo_config import cfg, sources, types
from oslo_config.sources import _environment

from moorage.domain.errors import InvalidDescription
from moorage.http.config import ServerConfig, is_loopback
from moorage.http.kernel import Bounds
from moorage.options import MOUNTS, SETTINGS, default_database
from moorage.solver.config import PoolConfig
from moorage.usecases.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from moorage.options import Setting

ENVIRONMENT_PREFIX: Final = "MOORAGE_"
CONFIG_FILES: Final = ("moorage.conf", "/etc/moorage/moorage.conf")
"""Looked for in this order when none is named; the first that exists is read."""
READERS: Final = 128
"""Request bodies a worker receives at a time, beyond the requests it works on."""

_SECTION: Final = "DEFAULT"
_PASSWORD: Final = re.compile(r"(://[^:/@]*:)[^@]*@")
_UNSET: Final = sources._NoValue  # noqa: SLF001 - what oslo.config wants to see for "not here"


class BadSetting(InvalidDescription):
    """A setting cannot be used. Names the option and where its value came from."""

    def __init__(self, name: str, source: str, problem: str) -> None:
        super().__init__(f"setting {name} ({source}): {problem}", path=name)
        self.name = name
        self.source = source


@dataclass(frozen=True)
class Effective:
    """The values in force, and where each came from."""

    values: Mapping[str, Any]
    """Name -> plain value: text, number, truth or list of texts. Goes through JSON unchanged."""
    sources: Mapping[str, str]

    def lines(self) -> Iterable[str]:
        """What `--show-config` prints: itself a valid configuration file, secrets masked."""
        yield f"[{_SECTION}]"
        for setting in SETTINGS:
            value = self.values[setting.name]
            for one in value if setting.multi else [value]:
                shown = masked(setting.show(one)) if setting.secret else setting.show(one)
                yield f"# {self.sources[setting.name]}"
                yield f"{setting.name} = {shown}"


@dataclass(frozen=True)
class Settings:
    """The configs of all parts."""

    database: str
    database_directory: Path | None
    """The default database's directory, to be made if it is not there."""
    clock_file: str | None
    server: ServerConfig
    pool: PoolConfig
    limits: Limits


def masked(url: str) -> str:
    """A URL without the password it may hold."""
    return _PASSWORD.sub(r"\1***@", url)


def read(
    given: Mapping[str, str | bool | Sequence[str]],
    environ: Mapping[str, str],
    files: Sequence[str] = CONFIG_FILES,
) -> Effective:
    """Settle every value.

    `given` is what the command line says, by option name (with `config_file` among them), `environ`
    the environment, `files` the places to look for a file when none is named.

    Raises:
        BadSetting: a value, a file or a key cannot be used.
    """
    file = _config_file(given, environ, files)
    if file is not None:
        _check_keys(file)
    options = _Literal()
    options._env_driver = _Environment(environ, given)  # noqa: SLF001 - its prefix is OS_ otherwise
    options.register_cli_opts([_option(setting) for setting in SETTINGS])
    try:
        options(
            list(_arguments(given)),
            project="moorage",
            default_config_files=[file] if file else [],
            default_config_dirs=[],
        )
    except cfg.Error as error:
        raise BadSetting("config_file", file or "command line", str(error)) from error
    found = {setting.name: _value(options, setting, given) for setting in SETTINGS}
    values = {name: value for name, (value, _) in found.items()}
    sources_ = {name: source for name, (_, source) in found.items()}
    values["database"] = values["database"] or f"sqlite:///{default_database()}"
    values["mount"] = _all_mounts(values["mount"], sources_["mount"])
    return Effective(values, sources_)


def configure(effective: Effective) -> Settings:
    """The configs for these values, checked against each other.

    Raises:
        BadSetting: two settings do not go together.
    """
    value = effective.values
    _check_together(effective)
    default = default_database()
    return Settings(
        database=value["database"],
        database_directory=default.parent if value["database"] == f"sqlite:///{default}" else None,
        clock_file=value["clock_file"] or None,
        server=ServerConfig(
            host=value["host"],
            port=value["port"],
            workers=value["workers"],
            auth=value["auth"],
            mounts=_mounts(effective),
            bounds=Bounds(body=value["body_limit"], running=value["threads"], readers=READERS),
            log_level=value["log_level"],
            pid_file=value["pid_file"] or None,
        ),
        pool=PoolConfig(
            processes=value["solver_workers"],
            queue=value["solver_queue"],
            memory=value["solver_memory"],
        ),
        limits=Limits(
            default_hold=value["hold_default"],
            longest_hold=value["longest_hold"],
            renewals=value["max_renewals"],
            claim_lifetime=value["claim_lifetime"],
            longest_claim=value["longest_claim"],
            held_members=value["held_members"],
            time_limit=value["solve_time_limit"],
            longest_time_limit=value["longest_time_limit"],
        ),
    )


class _Literal(cfg.ConfigOpts):
    """Options whose values mean what they say."""

    def _substitute(self, value: Any, group: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401, ARG002 - oslo.config's signature
        return value


class _Environment(_environment.EnvironmentConfigurationSource):
    """`MOORAGE_<NAME>`, for options that the command line does not give.

    oslo.config takes an option of the command line for the file's if both have it, and would
    let the environment win over it.
    """

    def __init__(self, environ: Mapping[str, str], given: Collection[str]) -> None:
        self._environ = environ
        self._given = given

    @staticmethod
    def get_name(group_name: str | None, option_name: str) -> str:
        """The variable of an option."""
        del group_name  # there is only one
        return f"{ENVIRONMENT_PREFIX}{option_name.upper()}"

    def get(self, group_name: str | None, option_name: str, opt: Any) -> tuple[Any, Any]:  # noqa: ANN401 - oslo.config's signature
        """The variable's value and its location."""
        variable = self.get_name(group_name, option_name)
        text = self._environ.get(variable)
        if text is None or option_name in self._given:
            return (_UNSET, None)
        place = cfg.LocationInfo(cfg.Locations.environment, variable)
        return (text.split(",") if opt.multi else text, place)


def _option(setting: Setting) -> Any:  # noqa: ANN401 - oslo.config's class
    """The setting for oslo.config. Texts stay texts here: errors are worded in one place."""
    if setting.multi:
        return cfg.MultiOpt(setting.name, item_type=types.String(), default=list(setting.default))
    return cfg.Opt(setting.name, type=types.String(), default=setting.default)


def _arguments(given: Mapping[str, str | bool | Sequence[str]]) -> Iterable[str]:
    for setting in SETTINGS:
        value = given.get(setting.name)
        if value is None:
            continue
        if isinstance(value, str | bool):
            yield f"--{setting.name}={str(value).lower() if isinstance(value, bool) else value}"
        else:
            yield from (f"--{setting.name}={one}" for one in value)


def _value(options: Any, setting: Setting, given: Collection[str]) -> tuple[Any, str]:  # noqa: ANN401 - oslo.config's class
    """The value of a setting as its type, and its source."""
    raw = options[setting.name]
    source = _source(options, setting, given)
    try:
        if setting.multi:
            return [setting.type(one) for one in raw], source
        return setting.type(raw), source
    except ValueError as error:
        raise BadSetting(setting.name, source, f"{error}: {raw!r}") from error


def _source(options: Any, setting: Setting, given: Collection[str]) -> str:  # noqa: ANN401 - oslo.config's class
    if setting.name in given:
        return f"command line, --{setting.name.replace('_', '-')}"
    place = options.get_location(setting.name)
    if place is None or place.location is cfg.Locations.opt_default:
        return "default"
    if place.location is cfg.Locations.environment:
        return f"environment, {place.detail}"
    return f"file {place.detail}"


def _config_file(
    given: Mapping[str, Any], environ: Mapping[str, str], files: Sequence[str]
) -> str | None:
    for source, named in (
        ("command line, --config-file", given.get("config_file")),
        ("environment, MOORAGE_CONFIG_FILE", environ.get("MOORAGE_CONFIG_FILE")),
    ):
        if named:
            if not Path(named).is_file():
                raise BadSetting("config_file", source, f"there is no file {named}")
            return str(named)
    return next((file for file in files if Path(file).is_file()), None)


def _check_keys(file: str) -> None:
    """Refuse what nobody would read: unknown keys are misspelt ones."""
    sections: dict[str, dict[str, Any]] = {}
    try:
        cfg.ConfigParser(file, sections).parse()
    except (cfg.ParseError, OSError, UnicodeError) as error:
        raise BadSetting("config_file", f"file {file}", str(error)) from error
    for section in sections:
        if section != _SECTION:
            raise BadSetting(section, f"file {file}", "the only section is [DEFAULT]")
    known = {setting.name for setting in SETTINGS}
    for key in sections.get(_SECTION, {}):
        if key not in known:
            raise BadSetting(key, f"file {file}", "there is no such setting")


_OF_OTHERS: Final = ("ENDPOINT", "TOKEN", "PROJECT", "ROLE", "CONFIG_FILE")
"""Variables of the command line's client, and the one that names the file."""


def strange_variables(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like settings but are none: misspelt ones, or some other tool's."""
    known = {setting.name.upper() for setting in SETTINGS} | set(_OF_OTHERS)
    return sorted(
        variable
        for variable in environ
        if variable.startswith(ENVIRONMENT_PREFIX)
        and variable.removeprefix(ENVIRONMENT_PREFIX) not in known
    )


def _all_mounts(given: Sequence[str], source: str) -> list[str]:
    """Every dialect as `name=path`: the given ones over the defaults."""
    named = dict(MOUNTS)
    for entry in given:
        name, _, path = entry.partition("=")
        if name not in named:
            raise BadSetting("mount", source, f"{name} is none of {', '.join(sorted(named))}")
        named[name] = path
    return [f"{name}={path}" for name, path in named.items()]


def _mounts(effective: Effective) -> dict[str, str]:
    """Name -> prefix of what is served; the root's is empty."""
    named = dict(entry.split("=", 1) for entry in effective.values["mount"])
    places = {name: path.rstrip("/") for name, path in named.items() if path}
    if len(set(places.values())) < len(places):
        raise BadSetting("mount", effective.sources["mount"], "two mounts have the same path")
    return places


def _check_together(effective: Effective) -> None:
    value, source = effective.values, effective.sources
    if value["auth"] == "noauth2" and not (is_loopback(value["host"]) or value["insecure"]):
        raise BadSetting(
            "host",
            source["host"],
            f"{value['host']} can be reached by others, and auth noauth2 believes everybody;"
            " choose a loopback address, or say --insecure",
        )
    for less, more in (
        ("hold_default", "longest_hold"),
        ("claim_lifetime", "longest_claim"),
        ("solve_time_limit", "longest_time_limit"),
    ):
        if value[less] > value[more]:
            raise BadSetting(less, source[less], f"it is longer than {more}")
    if value["threads"] <= value["solver_queue"] + value["solver_workers"]:
        raise BadSetting(
            "threads",
            source["threads"],
            "it must be more than solver_queue and solver_workers together,"
            " or solves leave no thread for anything else",
        )
