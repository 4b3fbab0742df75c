"""Run the operator's program: JSON on its standard input, a bounded time, its whole group ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.usecases.effects import OutwardFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.usecases.effects import Message

ID: Final = "MOORAGE_EFFECT_ID"
"""The environment variable with the id, the same in every attempt."""
KIND: Final = "MOORAGE_EFFECT_KIND"

_TOLD: Final = 500
"""Characters of what the program wrote that are kept."""
_INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Of the service's environment; its settings, passwords among them, are not the program's."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that does what a message says. Exit status 0 counts as done."""

    path: str
    timeout: float
    """Seconds; then it is killed with all that it has started."""

    def __call__(self, message: Message) -> str:
        """Run it.

        Raises:
            OutwardFailure: it cannot be run, took too long, or ended with another status.
        """
        told = json.dumps(message.body).encode()
        environment = _environment(message, os.environ)
        # Files, not pipes: whatever the program leaves behind cannot keep the reader waiting.
        with tempfile.TemporaryFile() as heard, tempfile.TemporaryFile() as said:
            heard.write(told)
            heard.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the operator's own program
                    [self.path],
                    stdin=heard,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise OutwardFailure(f"cannot run {self.path}: {error.strerror}") from error
            try:
                status = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _end(process)
                raise OutwardFailure(f"the hook took more than {self.timeout:g} s") from None
            said.seek(0)
            words = said.read(_TOLD).decode(errors="replace").strip()
        if status:
            raise OutwardFailure(f"the hook ended with status {status}: {words}")
        return f"the hook has run: {words}" if words else "the hook has run"


def _environment(message: Message, own: Mapping[str, str]) -> dict[str, str]:
    kept = {name: own[name] for name in _INHERITED if name in own}
    return kept | {ID: message.id, KIND: str(message.body["kind"])}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and whatever it has started; its id is its own until it is waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
