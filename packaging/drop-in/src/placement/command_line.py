"""The options that the reference's commands have: which files are read, and those of oslo.log."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import version
from typing import Final

from placement.configuration import NamedFiles

_DISTRIBUTION: Final = "moorage-placement"
_SWITCHES: Final = ("debug", "use-journal", "use-json", "use-syslog", "watch-log-file")
_WITH_VALUES: Final = ("log-config-append", "log-date-format", "syslog-log-facility")
_NO_EFFECT: Final = "accepted, and without effect: this command writes no log"


def parser(prog: str) -> argparse.ArgumentParser:
    """A parser of the options before the command; `named_files` reads those of files."""
    made = argparse.ArgumentParser(prog=prog, allow_abbrev=False)
    made.add_argument("--version", action="version", version=version(_DISTRIBUTION))
    for kind, told in (("file", "a configuration file"), ("dir", "a directory of *.conf")):
        made.add_argument(
            f"--config-{kind}",
            dest="sources",
            action="append",
            default=[],
            type=partial(_source, kind),
            metavar="PATH",
            help=f"{told}; the last one that says something wins",
        )
    for name in _SWITCHES:
        short = ["-d"] if name == "debug" else []
        made.add_argument(*short, f"--{name}", action="store_true", help=_NO_EFFECT)
        made.add_argument(f"--no{name}", action="store_true", help=argparse.SUPPRESS)
    for names in (
        ("log-file", "logfile"),
        ("log-dir", "logdir"),
        *((one,) for one in _WITH_VALUES),
    ):
        made.add_argument(*(f"--{one}" for one in names), metavar="VALUE", help=_NO_EFFECT)
    return made


def named_files(args: argparse.Namespace) -> NamedFiles:
    """The files and directories that the command line names, in its order."""
    return NamedFiles(tuple(args.sources))


def _source(kind: str, path: str) -> tuple[str, str]:
    return kind, path
