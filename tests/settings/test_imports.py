"""What a service's processes import at their start: not what few of them ever need."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("moorage.service", {"alembic", "httpx", "sqlalchemy"}),  # the supervisor
        ("moorage.app", {"alembic", "httpx", "ortools", "rich"}),  # an HTTP worker
    ],
)
def test_a_process_starts_without(module: str, unneeded: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not unneeded & {*ran.stdout.split()}
