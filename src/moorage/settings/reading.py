"""From command line, environment and files to values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.options import MOUNTS, SETTINGS, default_database
from moorage.settings.config_files import CONFIG_FILES, find_files, read_files
from moorage.settings.effective_values import KEYSTONE, NOVA, BadSetting, Effective, masked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.options.kinds import Setting
    from moorage.settings.config_files import FileValues

ENVIRONMENT_PREFIX: Final = "MOORAGE_"
_OF_BUS: Final = "section [oslo_messaging_rabbit] "
"""How the sentence begins about a section that oslo.messaging reads, for `nova_notifications`."""


def read(
    given: Mapping[str, str | bool | Sequence[str]],
    environ: Mapping[str, str],
    files: Sequence[str] = CONFIG_FILES,
) -> Effective:
    """Settle every value.

    `given` is what the command line says, by option name (with `config_file` and `config_dir` among
    them), `environ` the environment, `files` the places to look for a file when none is named.

    Raises:
        BadSetting: a value, a file or a key cannot be used.
    """
    return settle(read_files(find_files(given, environ, files)), given, environ)


def settle(
    said: FileValues,
    given: Mapping[str, str | bool | Sequence[str]],
    environ: Mapping[str, str],
) -> Effective:
    """Settle every value, of files that have been read.

    Raises:
        BadSetting: a value cannot be used.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        texts, source = _said(setting, given, environ, said)
        values[setting.name] = _value(setting, texts, source)
        sources[setting.name] = source
    values["database"] = values["database"] or f"sqlite:///{default_database()}"
    values["mount"] = _all_mounts(values["mount"], sources["mount"])
    bus = bool(values["nova_notifications"])
    passed_on = {name: said.sections.get(name, {}) for name in (KEYSTONE, NOVA)}
    for name, section in passed_on.items():
        sources |= {f"{name}.{key}": said.sources[f"{name}.{key}"] for key in section}
    return Effective(
        values,
        sources,
        passed_on[KEYSTONE],
        passed_on[NOVA],
        tuple(said.files),
        tuple(one for one in said.ignored if not (bus and one.startswith(_OF_BUS))),
    )


def _said(
    setting: Setting,
    given: Mapping[str, str | bool | Sequence[str]],
    environ: Mapping[str, str],
    said: FileValues,
) -> tuple[Sequence[str], str]:
    """The texts of a setting, of the nearest place that says something, and the place."""
    name = setting.name
    found = given.get(name)
    if found is not None:
        return _texts(found), f"command line, --{name.replace('_', '-')}"
    variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
    if (text := environ.get(variable)) is not None:
        several = [one.strip() for one in text.split(",") if one.strip()]
        return several if setting.multi else [text], f"environment, {variable}"
    if name in said.texts:
        return said.texts[name], said.sources[name]
    return list(setting.default) if setting.multi else [setting.default], "default"


def _texts(given: Any) -> Sequence[str]:  # noqa: ANN401 - text, texts or a truth
    if isinstance(given, bool):
        return [str(given).lower()]
    return [given] if isinstance(given, str) else given


def _value(setting: Setting, texts: Sequence[str], source: str) -> Any:  # noqa: ANN401 - the setting's type
    """The value of a setting as its type.

    Raises:
        BadSetting: the text is none of its values.
    """
    try:
        if setting.multi:
            return [setting.type(one) for one in texts]
        return setting.type(texts[-1])
    except ValueError as error:
        raw = repr(list(texts) if setting.multi else texts[-1])
        shown = masked(raw) if setting.secret else raw
        raise BadSetting(setting.name, source, f"{error}: {shown}") from error


_OF_OTHERS: Final = ("ENDPOINT", "TOKEN", "PROJECT", "ROLE", "CONFIG_FILE", "CONFIG_DIR")
"""Variables of the command line's client, and those that name files."""


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
