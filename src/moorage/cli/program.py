"""The program: global options, the table of commands, errors to exit statuses."""

from __future__ import annotations

import argparse
import inspect
from difflib import SequenceMatcher, get_close_matches
from importlib import import_module
from importlib.metadata import version as version_of
from itertools import takewhile
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, cast

from cliff.app import App
from cliff.commandmanager import CommandManager

from moorage.cli.commands import COMMANDS, NOUNS
from moorage.cli.output import FAILED, INTERRUPTED, OK, USAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from cliff.command import Command
    from cliff.commandmanager import EntryPointWrapper

SUMMARY: Final = "Place an application jointly, hold the places, claim them one by one."
START: Final = """\
a demonstration, without a cloud:
  moorage demo
to try it:
  moorage sim start --fleet three-racks.yaml && export OS_CLOUD=moorage-sim
  moorage ensemble create -f shop.yaml --hold 10m
  moorage ensemble show shop --map
on a cloud: set OS_CLOUD, or the OS_ variables, as for every OpenStack client.
Help of a command: moorage ensemble create --help. Ids may be shortened.
Exit status: 0 done, 2 usage, 3 infeasible, 4 conflict or stale, 5 quota or forbidden,
  6 not found, 1 otherwise.
"""
HELP: Final = "help"
"""`moorage help NOUN VERB` is `moorage NOUN VERB --help`."""
BROKEN_PIPE: Final = 141
_LIKELY: Final = 4
"""Commands that are named where one is mistyped."""
_LIKE_A_VERB: Final = 0.75
"""How similar a word must be to a verb to be taken for it: verbs are short."""


class LazyCommand:
    """A command that is imported when needed; to cliff, an entry point."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def load(self) -> type[Command]:
        """Import the class."""
        module, _, name = self.value.partition(":")
        found: type[Command] = getattr(import_module(f"moorage.cli.{module}"), name)
        return found

    def summary(self) -> str:
        """The first line of the class's docstring."""
        return (inspect.getdoc(self.load()) or "").partition("\n")[0]


class Program(App):
    """The application."""

    NAME = "moorage"

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        commands = CommandManager(None)
        super().__init__(SUMMARY, version_of("moorage"), commands, stdout=stdout, stderr=stderr)
        del commands.commands["help"]
        for name, value in COMMANDS.items():
            commands.commands[name] = cast("EntryPointWrapper", LazyCommand(name, value))

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """The global options; they stand before the command."""
        parser = argparse.ArgumentParser(
            prog=self.NAME,
            usage="moorage [options] <noun> <verb> [arguments]",
            description=description,
            epilog=overview(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **(argparse_kwargs or {}),
        )
        add = parser.add_argument
        add("--version", action="version", version=f"moorage {version}")
        add("--endpoint", metavar="URL", help="the service's URL (MOORAGE_ENDPOINT)")
        add("--os-cloud", metavar="NAME", help="a simulation, or a cloud of clouds.yaml (OS_CLOUD)")
        add("--token", metavar="TOKEN", help="the token to send (MOORAGE_TOKEN)")
        add("--project", metavar="ID", help="act in this project (noauth2)")
        add("--role", metavar="ROLE", help="with --project: act with this role (default: member)")
        add("--debug", action="store_true", help="show tracebacks")
        add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        return parser

    def run(self, argv: Sequence[str]) -> int:
        """Run one command line; return the exit status."""
        try:
            self.options = self.parser.parse_args(list(argv))
            words = self.options.command
            if not words or words == [HELP]:
                self.parser.print_help(self.stdout)
                return OK
            return self._run([*words[1:], "--help"] if words[0] == HELP else words)
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else FAILED
        except KeyboardInterrupt:
            return INTERRUPTED
        except BrokenPipeError:
            return BROKEN_PIPE

    def _run(self, words: list[str]) -> int:
        name, rest = named_command(words)
        if name not in COMMANDS:
            return self._unknown(name, rest)
        factory = self.command_manager.commands[name].load()
        command = factory(self, self.options, name)
        args = command.get_parser(f"{self.NAME} {name}").parse_args(rest)
        return int(command.run(args))

    def _unknown(self, group: str, rest: list[str]) -> int:
        """Report an unknown command, with the group's commands or similar ones."""
        of_group = [name for name in COMMANDS if name.startswith(f"{group} ")] if group else []
        if of_group and (not rest or rest[0] in {"-h", "--help", "help"}):
            self.stdout.write("\n".join(listing(of_group)) + "\n")
            return OK if rest else USAGE
        wrong = [word for word in rest if not word.startswith("-")]
        begun = [one for one in of_group if wrong and one.startswith(f"{group} {wrong[0]}")]
        verbs = {name.removeprefix(f"{group} "): name for name in of_group}
        near = [verbs[one] for one in get_close_matches(wrong[0], verbs)] if wrong else []
        likely = begun or near or of_group or alike(wrong or rest)
        said = " ".join([*group.split(), *wrong][: max(2, len(group.split()) + 1)])
        self.stderr.write(f"moorage: no such command: {said}\n")
        told = ["Did you mean:", *listing(likely)] if likely else [nouns(), "All: moorage help"]
        self.stderr.write("\n".join(told) + "\n")
        return USAGE


def named_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command or group that the first words name, and the remaining words.

    Words may be shortened as long as they mean one thing only; a whole word is never taken for the
    beginning of another. Where they mean nothing, all of them are the rest.
    """
    typed = list(takewhile(lambda word: not word.startswith("-"), words))
    every = [tuple(one.split()) for one in COMMANDS]
    for count in range(len(typed), 0, -1):
        meant = {one[:count] for one in every if len(one) >= count}
        for at, word in enumerate(typed[:count]):
            begun = {one for one in meant if word and one[at].startswith(word)}
            meant = {one for one in begun if one[at] == word} or begun
        if len(meant) == 1:
            return " ".join(meant.pop()), list(words[count:])
    return "", list(words)


def alike(words: Sequence[str]) -> list[str]:
    """Commands similar to these words: with this verb, or of the most similar noun, by its verb.

    None, where no verb and no noun is similar.
    """
    of_verb = [name for name in COMMANDS if name.rpartition(" ")[2] == words[0]]
    if of_verb:
        return of_verb[:_LIKELY]
    text = " ".join(words[:3])

    known = {name.split(maxsplit=1)[0] for name in COMMANDS}
    verbs = {name.rpartition(" ")[2] for name in COMMANDS}
    near = get_close_matches(words[0], known, 1) or get_close_matches(
        words[0], verbs, 1, _LIKE_A_VERB
    )
    if not near:
        return []
    if near[0] not in known:
        return [name for name in COMMANDS if name.rpartition(" ")[2] == near[0]][:_LIKELY]

    def likeness(name: str) -> tuple[float, float]:
        noun = SequenceMatcher(None, name.split(maxsplit=1)[0], words[0]).ratio()
        return -noun, -SequenceMatcher(None, name, text).ratio()

    return sorted(COMMANDS, key=likeness)[:_LIKELY]


def nouns() -> str:
    """The nouns, of which a command begins with one: wrapped as text."""
    return fill(f"Commands begin with one of: {', '.join(NOUNS)}.", 79, subsequent_indent="  ")


def overview() -> str:
    """The commands by noun, and how to begin."""
    width = max(len(noun) for noun in NOUNS)
    lines = ["commands:"]
    for noun, summary in NOUNS.items():
        lines.append(f"  {noun:{width}}  {summary}")
        verbs = [name.partition(" ")[2] for name in COMMANDS if name.split()[0] == noun]
        if any(verbs):
            lines.append(f"  {'':{width}}    {' · '.join(verbs)}")
    return "\n".join([*lines, "", START])


def listing(names: Iterable[str]) -> list[str]:
    """Commands with their summaries, one a line."""
    known = [name for name in names if name in COMMANDS]
    width = max((len(name) for name in known), default=0)
    return [
        f"  moorage {name:{width}}  {LazyCommand(name, COMMANDS[name]).summary()}" for name in known
    ]
