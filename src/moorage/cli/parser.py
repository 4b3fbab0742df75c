"""Usage errors that fit on a screen, and say what was probably meant."""

from __future__ import annotations

import argparse
import difflib
import re
from typing import TYPE_CHECKING, Final

from moorage.cli.output import USAGE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

LINES: Final = 3
"""A usage that is longer is not shown with an error."""
CHOICES: Final = 8
"""Choices beyond which only the nearest is named."""
_CHOICE: Final = re.compile(r"invalid choice: '?(?P<said>.*?)'? \(choose from (?P<known>.*)\)")
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<said>\S+)")


class Parser(argparse.ArgumentParser):
    """argparse's own, but for what it says of mistakes."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, shortly, and end with the status of wrong usage."""
        usage = self.format_usage()
        if usage.count("\n") > LINES:
            usage = f"usage: {self.prog} ...   (all of it: {self.prog} --help)\n"
        self.exit(USAGE, f"{usage}{self.prog}: error: {self._shortened(message)}\n")

    def _shortened(self, message: str) -> str:
        if found := _CHOICE.search(message):
            known = [one.strip("' ") for one in found["known"].split(",")]
            if len(known) > CHOICES:
                hint = _nearest(found["said"], known) or f"; there are {len(known)} (see --help)"
                return f"{message[: found.start()]}invalid choice: {found['said']!r}{hint}"
        if found := _UNKNOWN.search(message):
            return message + _nearest(found["said"].partition("=")[0], self._option_string_actions)
        return message


def _nearest(said: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(said, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
