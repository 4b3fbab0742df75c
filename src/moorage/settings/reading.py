"""From command line, environment and file to values.

Parsing is oslo.config's, on a `ConfigOpts` of our own; values are taken literally (no `$`
substitution), because database passwords contain anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oslo_config import cfg, sources, types
from oslo_config.sources import _environment

from moorage.options import MOUNTS, SETTINGS, default_database
from moorage.settings.effective_values import KEYSTONE, NOVA, SECTION, BadSetting, Effective, masked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from moorage.options.kinds import Setting

ENVIRONMENT_PREFIX: Final = "MOORAGE_"
CONFIG_FILES: Final = ("moorage.conf", "/etc/moorage/moorage.conf")
"""Looked for in this order when none is named; the first that exists is read."""

_UNSET: Final = sources._NoValue  # noqa: SLF001 - what oslo.config wants to see for "not here"


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
    keystone, nova = ({}, {}) if file is None else _check_keys(file)
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
    return Effective(values, sources_, keystone, nova, file or "")


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
        if opt.multi:
            return ([one.strip() for one in text.split(",") if one.strip()], place)
        return (text, place)


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
        shown = masked(repr(raw)) if setting.secret else repr(raw)
        raise BadSetting(setting.name, source, f"{error}: {shown}") from error


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


def _check_keys(file: str) -> tuple[dict[str, str], dict[str, str]]:
    """Refuse what nobody would read: unknown keys are misspelt ones.

    Return the sections of Keystone and Nova.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(file, sections).parse()
    except (cfg.ParseError, OSError, UnicodeError) as error:
        raise BadSetting("config_file", f"file {file}", str(error)) from error
    for section in sections:
        if section not in {SECTION, KEYSTONE, NOVA}:
            raise BadSetting(
                section,
                f"file {file}",
                f"the only sections are [{SECTION}], [{KEYSTONE}] and [{NOVA}]",
            )
    known = {setting.name for setting in SETTINGS}
    for key in sections.get(SECTION, {}):
        if key not in known:
            raise BadSetting(key, f"file {file}", "there is no such setting")
    keystone, nova = (
        {key: values[-1] for key, values in sections.get(section, {}).items()}
        for section in (KEYSTONE, NOVA)
    )
    return keystone, nova


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
