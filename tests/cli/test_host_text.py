"""Why a host is closed, in words."""

import pytest

from moorage.cli.host_text import closed_for


@pytest.mark.parametrize(
    ("kind", "reason", "told"),
    [
        ("maintenance", "firmware", "away until 2026-12-07T07:00Z (maintenance: firmware)"),
        ("maintenance", "", "away until 2026-12-07T07:00Z (maintenance)"),
        (None, "", "away until 2026-12-07T07:00Z"),
    ],
)
def test_an_absence_is_told_as_far_as_it_is_known(kind: str | None, reason: str, told: str) -> None:
    closing = {"why": "away", "start": None, "end": "2026-12-07T07:00:00Z"}
    assert closed_for({**closing, "kind": kind, "reason": reason}) == told
