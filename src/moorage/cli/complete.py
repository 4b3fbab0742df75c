"""`moorage complete`: the shell's completion, as a script that needs nothing but the shell."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from string import Template
from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.commands import COMMANDS
from moorage.cli.output import Shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

SHELLS: Final = ("bash", "zsh")

_SCRIPT: Final = Template("""\
# Completion for moorage. Load it in this shell with: source <(moorage complete $shell)
${before}_moorage() {
  local current="$${COMP_WORDS[COMP_CWORD]}" command= offered= word skip=0 at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="$${COMP_WORDS[at]}"
    if ((skip)); then [[ "$$word" == "=" ]] || skip=0; continue; fi
    case "$$word" in
      $valued) if [[ -z "$$command" ]]; then skip=1; fi ;;
      -*) ;;
      *) command="$${command:+$$command }$$word" ;;
    esac
  done
  COMPREPLY=()
  case "$$command" in
$cases
  esac
  if [[ "$$current" == -* || ( -n "$$offered" && "$$offered" != -* ) ]]; then
    COMPREPLY=($$(compgen -W "$$offered" -- "$$current"))
  fi
}
complete -o bashdefault -o default -F _moorage moorage
""")
_BEFORE: Final = {"bash": "", "zsh": "autoload -Uz bashcompinit && bashcompinit\n"}


class Complete(Command):
    """Print what makes your shell complete nouns, verbs and options.

    Where no word of moorage's own can follow, files are completed.
    """

    examples = """
        source <(moorage complete bash)                # in this shell
        moorage complete bash > ~/.local/share/bash-completion/completions/moorage
        source <(moorage complete zsh)
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """For whom."""
        parser.add_argument(
            "shell", nargs="?", choices=SHELLS, default="bash", help="default: bash"
        )

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """No `-f`: the shell reads one form only."""
        parser.set_defaults(form="table")

    def act(self, args: argparse.Namespace) -> Shown:
        """Print."""
        own = self.app.parser._option_string_actions  # noqa: SLF001 - argparse has no public list
        valued = [name for name, action in own.items() if action.nargs is None]
        follows = {"": [*sorted({name.split()[0] for name in COMMANDS}), *own]}
        follows |= _verbs()
        follows |= {name: list(self._options(name)) for name in COMMANDS}
        script = _SCRIPT.substitute(
            shell=args.shell,
            before=_BEFORE[args.shell],
            valued=" | ".join(valued),
            cases="\n".join(_cases(follows)),
        )
        return Shown({"shell": args.shell, "script": script}, script.rstrip("\n"))

    def _options(self, name: str) -> Iterable[str]:
        module, _, kind = COMMANDS[name][0].partition(":")
        command: Command = getattr(import_module(module), kind)(self.app, None, name)
        parser = command.get_parser(name)
        return sorted(parser._option_string_actions)  # noqa: SLF001 - argparse has no public list


def _verbs() -> dict[str, list[str]]:
    """Noun -> its verbs; nouns that are commands by themselves have none."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in COMMANDS:
        noun, _, verb = name.partition(" ")
        if verb:
            found[noun].append(verb)
    return {noun: sorted(verbs) for noun, verbs in found.items()}


def _cases(follows: dict[str, list[str]]) -> Iterator[str]:
    """A branch for each command: the whole of it, or with its arguments behind."""
    for name, words in follows.items():
        pattern = f'"{name}" | "{name} "*' if name in COMMANDS else f'"{name}"'
        yield f'    {pattern}) offered="{" ".join(words)}" ;;'
