"""The argument parser, with short usage errors and suggestions."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final

from moorage.cli.command_names import MOORAGE, as_typed, running
from moorage.cli.output import USAGE
from moorage.domain.errors import InvalidDescription
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

LINES: Final = 3
"""A usage that is longer is not shown with an error."""
CHOICES: Final = 8
"""Choices beyond which only the nearest is named."""
_CHOICE: Final = re.compile(r"invalid choice: '?(?P<said>.*?)'? \(choose from (?P<known>.*)\)")
_NO_INTEGER: Final = re.compile(r"invalid int value: (?P<said>.*)")
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<said>\S+)")


GLOBAL: Final = frozenset(
    {"--endpoint", "--os-cloud", "--token", "--project", "--role", "--debug", "--version"}
)
"""Options of the program itself, which stand before the command."""
_BEFORE_NOW: Final = re.compile(r"-\d.*", re.ASCII | re.DOTALL)
"""A time before now, or a negative number: no option begins so."""


class WrongUsage(InvalidDescription):
    """The arguments do not go together, or are incomplete; ends with the status of wrong usage."""


def new_name(text: str) -> str:
    """Read the name of a new thing.

    Raises:
        argparse.ArgumentTypeError: nothing, or blanks.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("a name must not be empty")
    return text


class Option:
    """An option or argument of commands, in the words of argparse; called, it declares itself."""

    def __init__(self, *names: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        self._names = names
        self._settings = settings

    def __call__(self, parser: argparse._ActionsContainer) -> None:
        parser.add_argument(*self._names, **self._settings)


class Flag(Option):
    """An option without a value: false unless it is given."""

    def __init__(self, name: str, help_: str) -> None:
        super().__init__(name, action="store_true", help=help_)


class Repeated(Option):
    """An option that may be given several times: a list."""

    def __init__(self, *names: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(*names, action="append", default=[], **settings)


ENSEMBLE: Final = Option(
    "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
)
DRY_RUN: Final = Flag("--dry-run", "check it, write nothing")
ALL_PROJECTS: Final = Flag("--all-projects", "for operators")
CONFIG_FILE: Final = Repeated(
    "--config-file", metavar="FILE", help="read this configuration file; repeatable, the last wins"
)
CONFIG_DIR: Final = Repeated(
    "--config-dir",
    metavar="DIRECTORY",
    help="read its *.conf in alphabetical order, after all --config-file; repeatable",
)
INPUT_FILE: Final = Option("file", metavar="FILE", help="- reads standard input")


class Parser(argparse.ArgumentParser):
    """argparse's parser with other error messages, and with `--since -1h`.

    Its texts name the commands of `program`.
    """

    def __init__(self, *, program: str = MOORAGE, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**settings)
        self._program = program

    def format_help(self) -> str:
        """The whole help."""
        with running(self._program):
            return as_typed(super().format_help())

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401 - argparse's own
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does; a negative time may follow its option as other values do."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args(_joined(words), namespace)

    def error(self, message: str) -> NoReturn:
        """Print a short message and end with the status of wrong usage."""
        usage = self.format_usage()
        if usage.count("\n") > LINES:
            usage = f"usage: {self.prog} ...   (in full: {self.prog} --help)\n"
        with running(self._program):
            said = as_typed(self._shortened(message))
        self.exit(USAGE, f"{usage}{self.prog}: error: {said}\n")

    def _shortened(self, message: str) -> str:
        if found := _CHOICE.search(message):
            known = [one.strip("' ") for one in found["known"].split(",")]
            if len(known) > CHOICES:
                hint = (
                    did_you_mean(found["said"], known) or f"; there are {len(known)} (see --help)"
                )
                return f"{message[: found.start()]}invalid choice: {found['said']!r}{hint}"
        if found := _NO_INTEGER.search(message):
            return f"{message[: found.start()]}not a whole number: {found['said']}"
        if (found := _UNKNOWN.search(message)) and found["said"].partition("=")[0] in GLOBAL:
            return f"{message}; it stands before the command: {self._program} {found['said']} ..."
        if found and found["said"] == "#":
            return (
                "the shell took a comment for arguments, as zsh does: leave out # and what follows"
                " (or: setopt interactive_comments)"
            )
        if found:
            return message + did_you_mean(
                found["said"].partition("=")[0], self._option_string_actions
            )
        return message


def _joined(words: Sequence[str]) -> list[str]:
    """Join `--since -1h` to `--since=-1h`: argparse would take the time for an option."""
    found: list[str] = []
    for word in words:
        before = found[-1] if found else ""
        takes = "--" not in found and before.startswith("--") and "=" not in before
        if takes and _BEFORE_NOW.fullmatch(word):
            found[-1] = f"{before}={word}"
        else:
            found.append(word)
    return found
