"""Folders of services' counts: one each, also for those that start at the same instant."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from moorage.telemetry import files


def test_services_that_start_at_once_take_away_no_folder_of_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / "moorage-metrics-killed"
    killed.mkdir()
    together = Barrier(8)

    def start(_: int) -> None:
        try:
            for _again in range(40):
                together.wait()
                with files.folder() as made:
                    together.wait()
                    assert made.is_dir()
        except BaseException:
            together.abort()
            raise

    with ThreadPoolExecutor(8) as services:
        list(services.map(start, range(8)))
    assert not list(tmp_path.iterdir())
