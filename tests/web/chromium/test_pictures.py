"""The pictures of the documentation show the page as it is."""

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.web.chromium.pictures import FOLDER, SHARE_OF_DIFFERENT, rendered

pytestmark = pytest.mark.process
AGAIN = "draw them again, look at them and commit them: make pictures"
MOST = 60_000
"""Bytes of one."""
TOLERANCE = 0.01
"""The share of points that another build of the browser may draw otherwise."""


def test_each_picture_shows_the_page_as_it_is(chromium: Any, tmp_path: Path) -> None:
    blank = chromium.new_page()
    found = {}
    for name, webp in rendered(chromium, tmp_path):
        kept = FOLDER / f"{name}.webp"
        assert kept.is_file(), AGAIN
        pair = [base64.b64encode(one).decode() for one in (kept.read_bytes(), webp)]
        found[name] = blank.evaluate(SHARE_OF_DIFFERENT, pair)
    blank.close()
    assert {f"{name}.webp" for name in found} == {one.name for one in FOLDER.iterdir()}
    assert {name: share for name, share in found.items() if share > TOLERANCE} == {}, AGAIN


def test_no_picture_is_large() -> None:
    sizes = {one.name: one.stat().st_size for one in FOLDER.iterdir()}
    assert {name: size for name, size in sizes.items() if size > MOST} == {}
