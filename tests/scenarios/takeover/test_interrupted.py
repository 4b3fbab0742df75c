"""An import that is broken off, by Ctrl-C or for good, is simply started again."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.servers.reference import Placement

from moorage.domain.content import differences
from moorage.store import open_store
from moorage.store.placement_database import read_placement
from moorage.usecases.ledger.content import ledger_content

pytestmark = pytest.mark.process

SLOWLY = """
import sys
from moorage.usecases.ledger import placement_takeover
placement_takeover.PROVIDERS_AT_ONCE = placement_takeover.CONSUMERS_AT_ONCE = 1
from moorage.store import Ledger
commit, count = Ledger.commit, 0
def slowly(self, changeset):
    global count
    done = commit(self, changeset)
    count += 1
    if count == int(sys.argv[1]):
        print("now", flush=True)
        sys.stdin.read()
    return done
Ledger.commit = slowly
from moorage.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("end", "commits"), [(signal.SIGKILL, 4), (signal.SIGINT, 11), (signal.SIGKILL, 14)]
)
def test_it_goes_on_where_it_was(
    end: signal.Signals,
    commits: int,
    cloud: Placement,
    cloud_file: Path,
    admin: Any,
    database: str,
) -> None:
    words = ("admin", "import", "placement", "--from", f"sqlite:///{cloud_file}")
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, str(commits), *words, "--database", database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        process.send_signal(end)
        _, said = process.communicate(timeout=100)
    assert told == b"now\n", said.decode()
    assert process.returncode == (130 if end is signal.SIGINT else -signal.SIGKILL)
    wanted = read_placement(f"sqlite:///{cloud_file}")
    store = open_store(database)
    half = list(differences(wanted, ledger_content(store)))
    store.close()
    assert {one.way.value for one in half} <= {"missing"}
    assert len(half) == 18 - 5 - (commits - 1)
    again = admin.body(*words)
    assert again["written"] == len(half)
    assert again["differences"] == []
