"""Runs the operator's program: JSON on its standard input, within a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.usecases.effect_dispatch import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effect_dispatch import Message

ID: Final = "MOORAGE_EFFECT_ID"
"""The environment variable with the id, the same in every attempt."""
KIND: Final = "MOORAGE_EFFECT_KIND"

_TOLD: Final = 500
"""Characters of what the program wrote that are kept."""
_INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Of the service's environment; its settings, passwords among them, are not the program's."""


@dataclass(frozen=True, slots=True)
class HookProgram:
    """A program run for a message. Exit status 0 counts as success."""

    path: str
    timeout: float
    """Seconds; then it is killed with all that it has started."""

    def __call__(self, message: Message) -> str:
        """Run it.

        Raises:
            OutwardFailure: it cannot be run, took too long, or ended with another status.
        """
        named = {ID: message.id, KIND: str(message.body["kind"])}
        status, words = run_program(self.path, message.body, named, self.timeout)
        if status:
            raise OutwardFailure(f"the hook ended with status {status}: {words}")
        return f"the hook has run: {words}" if words else "the hook has run"


def run_program(
    path: str, told: Mapping[str, object], named: Mapping[str, str], timeout: float
) -> tuple[int, str]:
    """Run a program: its exit status, and the beginning of its output.

    Args:
        path: the program.
        told: JSON for its standard input.
        named: environment variables, beside the few that it inherits.
        timeout: seconds; then it is killed with all that it has started.

    Raises:
        OutwardFailure: it cannot be run, or took too long.
    """
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # Files, not pipes: whatever the program leaves behind cannot keep the reader waiting.
    with tempfile.TemporaryFile() as heard, tempfile.TemporaryFile() as said:
        heard.write(json.dumps(told).encode())
        heard.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's own program
                [path],
                stdin=heard,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environment | dict(named),
                start_new_session=True,
            )
        except OSError as error:
            raise OutwardFailure(f"cannot run {path}: {error.strerror}") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise OutwardFailure(f"the hook took more than {timeout:g} s") from None
        said.seek(0)
        return status, said.read(_TOLD).decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program's process group; its id stays reserved until it is waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
