"""The connections of a process share one bound on the pages that they keep."""

import subprocess
import sys
from pathlib import Path

READS = """
import resource
import sys
import threading

from sqlalchemy import make_url
from moorage.store.sqlite.backend import open_sqlite

backend = open_sqlite(make_url(f"sqlite:///{sys.argv[1]}"))
together = threading.Barrier(6)

def read(connection):
    connection.exec_driver_sql("SELECT sum(length(body)) FROM pages").all()
    together.wait()  # each has a connection of its own

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

before = megabytes()
read_all = backend.read_schema
threads = [threading.Thread(target=read_all, args=(read,)) for _ in range(together.parties)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(megabytes() - before)
"""


def test_six_readers_of_48_mb_keep_less_than_half_of_it_each(tmp_path: Path) -> None:
    # Closed before it is read: the log of a commit would be read from instead.
    fill = (
        "import sqlite3, sys; file = sqlite3.connect(sys.argv[1]);"
        "file.execute('CREATE TABLE pages (body BLOB)');"
        "file.executemany('INSERT INTO pages VALUES (zeroblob(?))', [[3000]] * 16000);"
        "file.commit(); file.close()"
    )
    path = str(tmp_path / "moorage.db")
    subprocess.run([sys.executable, "-c", fill, path], check=True)
    answer = subprocess.run(
        [sys.executable, "-c", READS, path], capture_output=True, text=True, check=True
    )
    assert int(answer.stdout) < 144
