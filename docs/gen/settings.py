"""The page of the settings, from their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from moorage.options.kinds import Setting

ABOUT: Final = """\
Every setting is an option of `moorage serve`, a key of the configuration file and an environment
variable. The command line wins over the environment, the environment over the file, the file over
the default. `moorage config show` shows each value, its source and its default;
`moorage serve --show-config` prints them in the form of a configuration file."""
HEAD: Final = ("Option", "Environment", "Key", "Default", "Meaning")


def page() -> str:
    """One row per setting."""
    from moorage.options import SETTINGS

    return "\n\n".join(["# Settings", ABOUT, table(HEAD, map(row, SETTINGS))])


def row(setting: Setting) -> tuple[str, ...]:
    """One setting in its three spellings."""
    name = setting.name
    return (
        f"`--{name.replace('_', '-')} {setting.metavar}`",
        f"`MOORAGE_{name.upper()}`",
        code(name),
        code(setting.written_default) if setting.default else "",
        text(setting.help),
    )
