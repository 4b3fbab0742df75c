"""`moorage demo`: runs the main use cases and checks their output."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import tempfile
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from moorage.cli.command import Command
from moorage.cli.output import INTERRUPTED, OK, Shown
from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from types import FrameType
    from typing import TextIO

    from moorage.cli.demo_script import Step

_CREATED: Final = re.compile(r"^id (?P<id>[0-9a-f]{4,})", re.MULTILINE)
_CLAIMED: Final = re.compile(r"^claim (?P<id>[0-9a-f]{8})  building", re.MULTILINE)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_INDENT: Final = "    "
_SHORT: Final = 4
"""Characters of an id that a person types."""
_FILES: Final = ("shop.yaml", "shop-hot.yaml", "env.yaml", "sixty.yaml", "upf.yaml", "racks.yaml")
_PATIENCE: Final = 30.0
_PAUSE: Final = 0.3
"""Seconds for which a command is typed again, and between two of them."""


class Unexpected(MoorageError):
    """A command of the demonstration did not give the expected result."""


class Demo(Command):
    """Run a demonstration: from an empty fleet to a held placement and a refusal.

    Starts servers on free ports over temporary databases, runs commands against them and prints
    each command with its output. Every output is checked; the exit status is 0 only if all are as
    expected. Servers and files are removed at the end.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--brief", action="store_true", help="only the first part, without the thousand hosts"
        )
        what.add_argument(
            "--leases", action="store_true", help="the demonstration of leases instead"
        )

    def act(self, args: argparse.Namespace) -> Shown | None:
        from moorage.cli.demo_script import EDGE, EDGE_NAME, FIRST, PROJECT, SECOND, SHOP, SIXTY

        begun = time.monotonic()
        run = Run(self.app.stdout)
        steps = 0
        stories = [(FIRST, SHOP), (SECOND, SIXTY)][: 1 if args.brief else 2]
        if args.leases:
            stories = [(EDGE_NAME, EDGE)]
        with ended_by_signal(), place_of_its_own():
            if args.leases:
                os.environ |= {"MOORAGE_PROJECT": PROJECT, "MOORAGE_ROLE": "admin"}
            for name, story in stories:
                os.environ["OS_CLOUD"] = name
                for step in story:
                    run.step(step)
                    steps += 1
        seconds = time.monotonic() - begun
        run.remark(
            f"{steps} commands, all as expected, in {seconds:.1f} s. Nothing is left running."
        )
        return None


def fitted(text: str, out: TextIO) -> str:
    """The text fitted to the output: folded to the width of a terminal."""
    return folded(text, shutil.get_terminal_size().columns) if out.isatty() else text


class Run:
    """Runs steps in order; remembers the id created last."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._pretty = out.isatty()
        self._id = ""
        self._claim = ""

    def step(self, step: Step) -> None:
        """Print the command, run it, check its result.

        Raises:
            Unexpected: another exit status, or a fact that is missing in the output.
            KeyboardInterrupt: the command was interrupted.
        """
        if step.remark:
            self.remark(step.remark)
        words = [
            word.replace("{id}", self._id).replace("{claim}", self._claim)
            for word in step.command.split()
        ]
        self._command(words, step.status)
        until = time.monotonic() + (_PATIENCE if step.patience else 0.0)
        while time.monotonic() < until and not _has(step, ran(words, io.StringIO())[1]):
            time.sleep(_PAUSE)
        status, output = ran(words, self._out)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if step.status != OK:
            self._out.write(f"{status}\n")
        self._check(step, words, status, output)
        created = _CREATED.search(output)
        if created:
            self._id = created["id"][:_SHORT]
        claimed = _CLAIMED.search(output)
        if claimed:
            self._claim = claimed["id"]

    def remark(self, text: str) -> None:
        """Print a line that is not a command's."""
        line = fitted(f"# {text}", self._out).replace(f"\n{_INDENT}", "\n# ")
        self._out.write(f"\n{_DIM}{line}{_PLAIN}\n" if self._pretty else f"\n{line}\n")

    def _command(self, words: list[str], status: int) -> None:
        line = f"$ moorage {shlex.join(words)}" + (" ; echo $?" if status else "")
        line = line.replace("'", "") if "[" in line else line
        line = fitted(line, self._out).replace("\n", " \\\n")
        self._out.write(f"{_BOLD}{line}{_PLAIN}\n" if self._pretty else f"{line}\n")
        self._out.flush()

    def _check(self, step: Step, words: list[str], status: int, output: str) -> None:
        if status != step.status:
            raise Unexpected(
                f"moorage {' '.join(words)}: exit status {status}, expected {step.status}"
            )
        for fact in step.facts:
            if not re.search(fact, output, re.MULTILINE):
                raise Unexpected(f"moorage {' '.join(words)}: no {fact!r} in its output")


def _has(step: Step, output: str) -> bool:
    return all(re.search(fact, output, re.MULTILINE) for fact in step.facts)


def ran(words: list[str], out: TextIO) -> tuple[int, str]:
    """Run a command in this process; its status and its output, which is shown as it comes."""
    from moorage.cli.program import Program

    both = Tee(out)
    stream = cast("TextIO", both)
    status = Program(stdout=stream, stderr=stream).run(words)
    return status, _COLOUR.sub("", both.kept())


def folded(text: str, width: int) -> str:
    """Text with long lines folded and indented; parts without blanks stay whole."""
    lines = text.split("\n")
    return "\n".join(
        line
        if len(_COLOUR.sub("", line)) <= width
        else textwrap.fill(
            line, width, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    )


class Tee(io.TextIOBase):
    """A stream that copies what it writes. Is a terminal if the other is, and then folds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._copy: list[str] = []

    def write(self, text: str) -> int:
        """Write to both streams."""
        self._copy.append(text)
        return self._out.write(fitted(text, self._out))

    def flush(self) -> None:
        """Flush the other stream."""
        self._out.flush()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._out.isatty()

    def fileno(self) -> int:
        """The other stream's descriptor."""
        return self._out.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override] # read-only here as there
        """The other stream's encoding."""
        return self._out.encoding

    def kept(self) -> str:
        """All text written so far."""
        return "".join(self._copy)


@contextlib.contextmanager
def place_of_its_own() -> Iterator[None]:
    """A temporary directory with the examples and registrations of its own; undone afterwards."""
    from moorage.cli.files import read_text

    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="moorage-demo-") as directory:
        for name in _FILES:
            Path(directory, name).write_text(read_text(name), encoding="utf-8")
        for name in environment:
            if name.startswith(("MOORAGE_", "OS_")) and name != "MOORAGE_TRANSCRIPT":
                del os.environ[name]
        os.environ["XDG_STATE_HOME"] = directory
        os.chdir(directory)
        try:
            yield
        finally:
            _end_all()
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)


def _end_all() -> None:
    """Stop the simulations that an aborted story has left running."""
    from moorage.cli.sim_process import end
    from moorage.client import registry

    for one in list(registry.running(registry.state_directory(os.environ))):
        end(one.pid)


@contextlib.contextmanager
def ended_by_signal() -> Iterator[None]:
    """Handle SIGTERM as Ctrl-C: started servers are stopped."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
