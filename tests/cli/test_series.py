"""`moorage lease create --every` and `moorage series`: options that go together."""

import pytest
from tests.cli.conftest import Cli

CREATE = ["lease", "create", "--flavor", "m1"]
DAILY = ["--every", "daily"]
HOUR = ["--duration", "1h"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([*CREATE, *DAILY, "--end", "2026-12-07", "--times", "2"], "needs --duration"),
        ([*CREATE, *DAILY, *HOUR], "give either --times or --until-date"),
        (
            [*CREATE, *DAILY, *HOUR, "--times", "2", "--until-date", "2026-12-24"],
            "give either --times or --until-date",
        ),
        ([*CREATE, *HOUR, "--times", "2"], "--times: only with --every"),
        ([*CREATE, *HOUR, "--zone", "UTC"], "--zone: only with --every"),
        (
            ["lease", "create", "--ensemble", "shop", *DAILY, *HOUR, "--times", "2"],
            "not with --ensemble",
        ),
        ([*CREATE, *DAILY, *HOUR, "--start", "soon", "--times", "2"], "not a time"),
        (["series", "extend", "x"], "give either --times or --until-date"),
        (["series", "cancel", "x", "--from", "2", "--only", "3"], "not allowed with"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], told: str, offline: Cli
) -> None:
    said = offline(*words)
    assert said.status == 2
    assert told in said.err
