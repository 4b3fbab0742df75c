"""The page of the commands, from their own help."""

from __future__ import annotations

import os
from typing import Final

WIDTH: Final = "100"
"""Columns that a command's help may use on its page."""

ABOUT_COMMANDS: Final = """\
`moorage [options] <noun> <verb>`. This page is the output of `--help`. Exit status: 0 done,
2 usage, 3 infeasible, 4 conflict or stale, 5 quota or forbidden, 6 not found, 1 otherwise.

A time is absolute (`2026-12-07T08:00Z`), `now`, or relative to the service's time (`+2h`, `1w`;
`--from=-1d` is past)."""


def page() -> str:
    """Every command, from its own help."""
    from moorage.agent.main import parser
    from moorage.cli.commands import COMMANDS, NOUNS

    os.environ["COLUMNS"] = WIDTH
    parts = [
        "# Commands",
        ABOUT_COMMANDS,
    ]
    for noun, summary in NOUNS.items():
        verbs = [name for name in COMMANDS if name.split()[0] == noun]
        parts.append(f"## {noun}\n\n{summary[0].upper()}{summary[1:]}.")
        parts += [f"```text\n{helped(name)}\n```" for name in verbs]
    parts.append(f"## moorage-agent\n\n```text\n{parser().format_help().rstrip()}\n```")
    return "\n\n".join(parts)


def helped(name: str) -> str:
    """The help of one command, as its parser prints it."""
    from moorage.cli.program import Program

    program = Program()
    make, found, _ = program.command_manager.find_command(name.split())
    text: str = make(program, None, found).get_parser(f"moorage {name}").format_help()
    return text.rstrip()
