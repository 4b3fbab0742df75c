"""What is said of mistakes on the command line."""

import pytest

from moorage.cli.parser import Parser
from moorage.cli.times import RelativePeriod, RelativeTime, stretch, time_of
from moorage.domain.period import HOUR


def said(parser: Parser, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_short_usage_is_shown_a_long_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="moorage lease show")
    parser.add_argument("lease")
    told = said(parser, [], capsys)
    assert told == (
        "usage: moorage lease show [-h] lease\n"
        "moorage lease show: error: the following arguments are required: lease\n"
    )
    for number in range(40):
        parser.add_argument(f"--option-{number}")
    assert said(parser, [], capsys).splitlines()[:-1] == [
        "usage: moorage lease show ...   (in full: moorage lease show --help)"
    ]


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (
            ["--kind", "kind-3o"],
            "argument --kind: invalid choice: 'kind-3o'; did you mean kind-3?",
        ),
        (["--kind", "zzz"], "argument --kind: invalid choice: 'zzz'; there are 40 (see --help)"),
        (["--knd", "kind-1"], "unrecognized arguments: --knd kind-1; did you mean --kind?"),
        (["--few", "c"], "argument --few: invalid choice: 'c' (choose from 'a', 'b')"),
    ],
)
def test_the_nearest_is_suggested(
    words: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="moorage x", allow_abbrev=False)
    parser.add_argument("--kind", choices=[f"kind-{number}" for number in range(40)])
    parser.add_argument("--few", choices=["a", "b"])
    assert said(parser, words, capsys).splitlines()[-1].replace("from a, b", "from 'a', 'b'") == (
        f"moorage x: error: {end}"
    )


def test_a_time_before_now_stands_after_its_option_as_any_other() -> None:
    parser = Parser(prog="moorage x")
    parser.add_argument("--since", type=time_of)
    parser.add_argument("--down", type=stretch)
    parser.add_argument("--priority", type=int)
    parser.add_argument("words", nargs="*")
    words = ["--since", "-1h", "--down", "-1h/2h", "--priority", "-3", "a"]
    found = parser.parse_args(words)
    assert found.since == RelativeTime(-HOUR)
    assert found.down == RelativePeriod(RelativeTime(-HOUR), 2 * HOUR)
    assert (found.priority, found.words) == (-3, ["a"])
    assert parser.parse_args(["--since=-1h"]).since == found.since
    assert parser.parse_args(["--", "--since", "-1h"]).words == ["--since", "-1h"]
