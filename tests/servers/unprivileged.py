"""Who runs a database server in tests that root runs: a user who may do nothing.

PostgreSQL refuses to run as root. The user must be able to enter the folders of what it runs,
which a clone below a folder of root's own (mode 0700) does not allow.
"""

import os
import pwd
import subprocess
from pathlib import Path


def user() -> str | None:
    """The name of that user; None where the tests are not run by root."""
    return "nobody" if os.geteuid() == 0 else None


def may_enter(path: Path) -> bool:
    """Whether that user may run a program, or enter a folder."""
    return not subprocess.run(["test", "-x", path], user=user(), cwd="/", check=False).returncode


def give(folder: Path) -> None:
    """Make a folder that user's own.

    Raises:
        PermissionError: it cannot be reached from above; where that is stands in the message.
    """
    name = user()
    if name is None:
        return
    os.chown(folder, pwd.getpwnam(name).pw_uid, -1)
    if may_enter(folder):
        return
    closed = next(one for one in (*reversed(folder.parents), folder) if not may_enter(one))
    raise PermissionError(
        f"a database server of the tests runs as {name}, who may not enter {closed}:"
        f" chmod a+x {closed}, name another folder in TMPDIR, or do not run the tests as root"
    )
