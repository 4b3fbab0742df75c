"""A short attack: the long one is `make fuzz-doors`."""

import argparse
from pathlib import Path

import pytest
from tests.fuzz.doors.__main__ import attack

SECONDS = 6.0


@pytest.mark.process
def test_hostile_requests_are_answered_and_others_are_served(tmp_path: Path) -> None:
    args = argparse.Namespace(
        seconds=SECONDS, seed=20261123, hammers=3, most=150.0, database="sqlite", log=None
    )
    report, wrong = attack(tmp_path, f"sqlite:///{tmp_path}/moorage.db", args)
    assert not wrong, report
    assert "another tenant's PUT" in report
