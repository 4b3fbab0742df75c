"""A service of its own for a benchmark, on SQLite in a directory that is gone afterwards."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def serving(source: str | None, *options: str) -> Iterator[tuple[int, int]]:
    """Start `moorage serve`; the process id of its supervisor, and its port.

    Args:
        source: the `src` of another checkout that is to be measured; None: this one.
        options: further arguments of the command.
    """
    environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
    with tempfile.TemporaryDirectory() as home:
        words = ["--port", "0", "--database", f"sqlite:///{home}/ledger.db", "--log-level", "error"]
        with subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "moorage.cli.main", "serve", *words, *options],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                port = int(line.partition("://")[2].partition(" ")[0].rpartition(":")[2])
                yield process.pid, port
            finally:
                process.terminate()
                process.wait(30)
