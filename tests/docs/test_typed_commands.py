"""Whatever the pages let people type is read by the commands: their words, options and values.

It is what every push tests of the guides that only `make nightly` executes.
"""

import re
import shlex
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from tests.docs.test_shells import commands
from tests.docs.test_transcripts import PAGES, ROOT

from moorage.cli.commands import COMMANDS
from moorage.cli.program import LazyCommand, Program, named_command

MOORAGE = re.compile(r"(?:^|[;|&(]|\b(?:do|exec|if|then|time|until|while))\s*(?:\w+=\S* )*moorage ")
ENDS = frozenset({";", "|", "||", "&", "&&", "(", ")", ");", "`"})
REDIRECTIONS = frozenset({">", ">>", "<", ">&", "&>", "<<<"})
SUBSTITUTED = re.compile(r"[$`]")
"""Only the shell knows what such a word is."""


def typed(command: str) -> Iterator[list[str]]:
    """The arguments of each `moorage` in a line of shell."""
    for found in MOORAGE.finditer(command):
        words: list[str] = []
        lexer = shlex.shlex(command[found.end() :], posix=True, punctuation_chars=True)
        lexer.commenters = ""
        lexer.wordchars += ":,$[]%+@^{}"
        try:
            for word in lexer:
                if word in ENDS:
                    break
                words.append(word)
        except ValueError:  # the quotes around a substitution end behind it
            pass
        yield list(without_redirections(words))


def without_redirections(words: list[str]) -> Iterator[str]:
    """The words that the program gets."""
    skipped = False
    for number, word in enumerate(words):
        following = words[number + 1 : number + 2]
        if word in REDIRECTIONS or (word in {"1", "2"} and {*following} & REDIRECTIONS):
            skipped = word in REDIRECTIONS
            continue
        if not skipped:
            yield word
        skipped = False


def refusal(words: list[str]) -> str:
    """What the command says of its arguments; empty: nothing, or only the shell knows."""
    program = Program(StringIO(), StringIO())
    try:
        rest = program.parser.parse_args(words).command
    except SystemExit as stop:
        return "" if not stop.code else f"options: {words}"
    name, arguments = named_command(rest)
    if name not in COMMANDS:
        return "" if {"--help", "-h", "help"} & {*rest} or not rest else f"no command: {words}"
    parser = LazyCommand(name, COMMANDS[name]).load()(program, None, name).get_parser(name)
    if any(map(SUBSTITUTED.search, arguments)):
        known = parser._option_string_actions
        options = (one.partition("=")[0] for one in arguments if one.startswith("--"))
        return "".join(f"no option: {one} of {name}" for one in options if one not in known)
    wrong: list[str] = []

    def error(message: str) -> None:
        wrong.append(message)
        raise SystemExit(2)

    parser.error = error  # type: ignore[method-assign,assignment]
    try:
        parser.parse_args(arguments)
    except SystemExit:
        return f"{name}: {wrong[0]}" if wrong else ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_read_what_the_page_lets_type(page: Path) -> None:
    for line, command in commands(page):
        for words in typed(command):
            said = refusal(words)
            assert not said, f"line {line}: $ {command}\n{said}"


def test_a_line_of_shell_has_its_commands() -> None:
    line = (
        "ID=$(moorage ensemble show 'a b' -f value -c id) && moorage lease list 2>/dev/null | head"
    )
    assert list(typed(line)) == [
        ["ensemble", "show", "a b", "-f", "value", "-c", "id"],
        ["lease", "list"],
    ]
    assert refusal(["lease", "list", "--frob"]) == "lease list: unrecognized arguments: --frob"
    assert refusal(["lease", "show", "$ID", "--frob"]) == "no option: --frob of lease show"
    assert refusal(["leese", "list"]) == "no command: ['leese', 'list']"
