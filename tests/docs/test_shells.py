"""What the pages let people type works in zsh as in bash."""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from tests.docs.test_transcripts import PAGES, ROOT, fences

from moorage.cli.commands import COMMANDS
from moorage.cli.program import Program

EVERY = [*PAGES, ROOT / "CONTRIBUTING.md"]
COMMENT = re.compile(r"\s#(\s|$)")
"""An interactive zsh takes it for arguments."""
WORDS = re.compile(r"""^(?:export )?(?P<name>\w+)=(?P<quote>["'])[^$`]* [^$`]*(?P=quote)\s*$""")
"""A variable of several words, which zsh does not split where it is used."""

GLOB = re.compile(r"\b(moorage|openstack)\b[^|;&]*[\w.]\*")
"""A pattern for the command itself, which zsh looks for among files."""


def commands(page: Path) -> Iterator[tuple[int, str]]:
    """The commands of a page's consoles and scripts, with their lines."""
    for number, info, lines in fences(page.read_text(encoding="utf-8")):
        if info.split()[:1] == ["bash"]:
            # In a file, which these are for the most part, a comment is one.
            for at, line in enumerate(lines, start=number + 1):
                yield at, COMMENT.split(line)[0]
        if info.split()[:1] == ["console"]:
            for at, line in enumerate(lines, start=number + 1):
                if line.startswith("$ "):
                    yield at, line.removeprefix("$ ")


def unquoted(command: str) -> str:
    """The command without its quoted parts."""
    return re.sub(r"""'[^']*'|"[^"]*\"""", "''", command)


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_work_in_zsh(page: Path) -> None:
    several: set[str] = set()
    for line, command in commands(page):
        bare = unquoted(command)
        assert COMMENT.search(bare) is None, f"line {line}: a comment is an argument in zsh"
        assert re.search(r"\w\[\d+\]", bare) is None, f"line {line}: zsh takes [0] for a pattern"
        assert GLOB.search(bare) is None, f"line {line}: zsh refuses a pattern without a match"
        if assigned := WORDS.match(command):
            several.add(assigned["name"])
        used = set(re.findall(r"\$\{?(\w+)", bare))
        assert not used & several, f"line {line}: zsh does not split {used & several} into words"


def test_examples_of_commands_work_in_zsh() -> None:
    app = Program(StringIO(), StringIO())
    for name in COMMANDS:
        example = getattr(app.command_manager.commands[name].load(), "examples", "")
        for line in example.splitlines():
            bare = unquoted(line.partition("  # ")[0])
            assert GLOB.search(bare) is None, f"{name}: {line}"
            assert re.search(r"\w\[\d+\]", bare) is None, f"{name}: {line}"
