"""A child keeps what memory is free: the next snapshot needs as much again."""

import ctypes
import os
import subprocess
import sys

import pytest

GROWS = """
import resource
import numpy as np
from moorage.http.child_main import _keep_memory
_keep_memory()

def renew() -> None:
    columns = [np.ones(10_000) for _ in range(36)]
    del columns

renew()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    renew()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment: str) -> int:
    """Pages that the system hands out while columns of a snapshot come and go, twenty times."""
    told = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    answer = subprocess.run(
        [sys.executable, "-c", GROWS],
        env=told | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(answer.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_free_memory_is_used_again_unless_the_operator_says_otherwise() -> None:
    given_back = faults(MALLOC_TRIM_THRESHOLD_="131072")
    # How many pages come with one fault is the system's choice: at least one fault for a column.
    assert given_back > 20 * 36, "otherwise there is nothing to keep"
    assert faults() < given_back / 10
