"""The entry point of `moorage`. It imports little, so that an early Ctrl-C is handled quietly."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141
_EXTRAS: Final = ("click", "h2")
"""What httpx imports where it is installed, for a program and a protocol not used here:
a quarter of a command's start."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `moorage` program: run a command line, return the exit status."""
    if argv is None:  # the process is this program's alone
        for name in _EXTRAS:
            sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # "there is no such module"
    try:
        from moorage.cli.program import Program

        status = Program().run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if status == _BROKEN_PIPE:
        # The interpreter would complain about the pipe once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


if __name__ == "__main__":
    sys.exit(main())
