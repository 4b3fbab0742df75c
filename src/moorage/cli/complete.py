"""`moorage complete`: the shell completion script.

Nouns, verbs and options need nothing but the shell; names of things are asked from the service.

cliff's completion is not used: it knows neither zsh, fish nor names, stops at an option before the
command, needs the bash-completion package, and takes typed words for names of variables, which
makes bash run a `$(...)` among them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.commands import COMMANDS
from moorage.cli.output import Shown
from moorage.cli.parser import Option
from moorage.cli.program import HELP

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping

SHELLS: Final = ("bash", "zsh", "fish")

_SCRIPT: Final = Template("""\
# Completion for moorage. Load it in this shell with: source <(moorage complete $shell)
${before}_moorage() {
  local current="$${COMP_WORDS[COMP_CWORD]}" previous="$${COMP_WORDS[COMP_CWORD - 1]}"
  local command= offered= things= word skip=0 at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="$${COMP_WORDS[at]}"
    if ((skip)); then [[ "$$word" == "=" ]] || skip=0; continue; fi
    case "$$word" in
      $valued) if [[ -z "$$command" ]]; then skip=1; fi ;;
    esac
    case "$$word" in
      $valued_after) if [[ -n "$$command" ]]; then skip=1; fi ;;
      -*) ;;
      help) command="$${command:+$$command help}" ;;
      *) command="$${command:+$$command }$$word" ;;
    esac
    case "$$command $$word" in
      $valued_by_command) skip=1 ;;
    esac
  done
  COMPREPLY=()
  if ((! skip)); then
    case "$$command" in
$cases
    esac
    case "$$command" in
$things
    esac
  fi
  case "$$previous" in
$options
  esac
  if [[ -n "$$things" && "$$current" != -* ]]; then
    # Others chose these names: read line by line, as compgen -W would run what is in $$(...).
    while IFS= read -r word; do
      if [[ "$$word" == "$$current"* ]]; then COMPREPLY+=("$$word"); fi
    done < <("$${COMP_WORDS[0]}" complete --names "$$things" 2>/dev/null)
    return
  fi
  for word in $$offered; do
    # Options are offered where one is begun.
    if [[ "$$word" != -* || "$$current" == -* ]] && [[ "$$word" == "$$current"* ]]; then
      COMPREPLY+=("$$word")
    fi
  done
}
complete -o bashdefault -o default -F _moorage moorage
""")
_FISH: Final = Template("""\
# Completion for moorage. Load it in this shell with: moorage complete fish | source
function __moorage_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l previous $$words[-1]
  set -l typed
  set -l skip 0
  for word in $$words[2..-1]
    if test $$skip = 1
      set skip 0
      continue
    end
    switch $$word
      case $valued
        if test -z "$$typed"
          set skip 1
        end
    end
    switch $$word
      case $valued_after
        if test -n "$$typed"
          set skip 1
        end
      case '-*'
      case help
        if test -n "$$typed"
          set -a typed $$word
        end
      case '*'
        set -a typed $$word
    end
    switch "$$typed $$word"
      case $valued_by_command
        set skip 1
    end
  end
  set -l offered
  set -l things
  if test $$skip = 0
    switch "$$typed"
$cases
    end
    switch "$$typed"
$things
    end
  end
  switch "$$previous"
$options
  end
  if test -n "$$things"; and not string match -q -- '-*' "$$current"
    $$words[1] complete --names $$things 2>/dev/null
  else if string match -q -- '-*' "$$current"
    string match -- '-*' $$offered
  else if test -n "$$offered"; and not string match -q -- '-*' "$$offered[1]"
    string match -v -- '-*' $$offered
  else
    __fish_complete_path "$$current"
  end
end
complete -c moorage -f -a '(__moorage_complete)'
""")
THINGS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ensemble": ("/v1/ensembles", "ensembles"),
        "decision": ("/v1/decisions", "decisions"),
        "lease": ("/v1/leases", "leases"),
        "series": ("/v1/series", "series"),
        "offer": ("/v1/offers", "offers"),
        "entry": ("/v1/waitlist", "entries"),
        "template": ("/v1/templates", "templates"),
        "subscription": ("/v1/subscriptions", "subscriptions"),
        "flavor": ("/v1/flavors", "flavors"),
    }
)
"""What an argument or an option of this name means: its listing, and the listing's key."""
_PLAIN: Final = re.compile(r"[\w@%+:.,/][\w@%+:.,/-]*")
"""A word without special characters of any shell: completing it runs nothing."""
_BEFORE: Final = {"bash": "", "zsh": "autoload -Uz bashcompinit && bashcompinit\n"}


class Complete(Command):
    """Print the completion script for your shell.

    Where no word of moorage's own can follow, files are completed.
    """

    examples = """
        source <(moorage complete bash)                # in this shell
        moorage complete bash > ~/.local/share/bash-completion/completions/moorage
        source <(moorage complete zsh)
        moorage complete fish > ~/.config/fish/completions/moorage.fish
    """
    options = (
        Option("shell", nargs="?", choices=SHELLS, default="bash", help="default: bash"),
        Option(
            "--names",
            choices=sorted(THINGS),
            metavar="THING",
            help="print the names of these things instead, as the script asks for them",
        ),
    )

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """No `-f`: there is only one form."""
        parser.set_defaults(form="table")

    def act(self, args: argparse.Namespace) -> Shown:
        if args.names is not None:
            names = self._names(args.names)
            return Shown({"names": names}, "\n".join(names))
        own = self.app.parser._option_string_actions  # noqa: SLF001 - argparse has no public list
        valued = [name for name, action in own.items() if action.nargs is None]
        follows = {"": [*sorted({name.split()[0] for name in COMMANDS}), HELP, *own]}
        follows |= _verbs()
        follows |= {name: list(self._words(name)) for name in COMMANDS}
        things = {name: kind for name in COMMANDS if (kind := self._thing(name))}
        after, by_command = self._valued()
        if args.shell == "fish":
            script = _fish(valued, after, by_command, follows, things)
            return Shown({"shell": args.shell, "script": script}, script.rstrip("\n"))
        script = _SCRIPT.substitute(
            shell=args.shell,
            before=_BEFORE[args.shell],
            valued=" | ".join(valued),
            valued_after=" | ".join(after),
            valued_by_command=" | ".join(
                f'"{name} {option}" | "{name} "*" {option}"' for name, option in by_command
            ),
            cases="\n".join(_cases(follows)),
            things="\n".join(f'    "{name}") things={kind} ;;' for name, kind in things.items()),
            options="\n".join(f"    --{kind}) things={kind} ;;" for kind in THINGS),
        )
        return Shown({"shell": args.shell, "script": script}, script.rstrip("\n"))

    def _names(self, kind: str) -> list[str]:
        """The words for a thing of this kind: its handle and name, else its id."""
        path, key = THINGS[kind]
        with self.client() as client:
            found = client.listing(path, key)
        words = set()
        for one in found:
            said = {str(one.get(name) or "") for name in ("handle", "name")}
            words |= {word for word in said if _PLAIN.fullmatch(word)} or {str(one["id"])}
        return sorted(words)

    def _parser(self, name: str) -> argparse.ArgumentParser:
        command = self.app.command_manager.commands[name].load()(self.app, None, name)
        return command.get_parser(name)

    def _thing(self, name: str) -> str:
        """The kind of things that a command's first argument is one of, else nothing."""
        actions = self._parser(name)._get_positional_actions()  # noqa: SLF001 - as below
        kind = actions[0].dest if actions else ""
        return kind if kind in THINGS else ""

    def _words(self, name: str) -> Iterable[str]:
        """The words of a command's own that may follow it: choices of its arguments, options."""
        parser = self._parser(name)
        for action in parser._get_positional_actions():  # noqa: SLF001 - as below
            yield from map(str, action.choices or ())
        yield from sorted(parser._option_string_actions)  # noqa: SLF001 - argparse has no public list

    def _valued(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The options that a value follows: in all commands that have them, and in some only."""
        valued: set[tuple[str, str]] = set()
        flags: set[str] = set()
        for name in COMMANDS:
            parser = self._parser(name)
            for option, action in parser._option_string_actions.items():  # noqa: SLF001 - as above
                if action.nargs == 0:
                    flags.add(option)
                elif action.nargs is None:
                    valued.add((name, option))
        always = {option for _, option in valued} - flags
        return sorted(always), sorted(one for one in valued if one[1] in flags)


def _verbs() -> dict[str, list[str]]:
    """Noun -> its verbs; nouns that are commands themselves have none."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in COMMANDS:
        noun, _, verb = name.partition(" ")
        if verb:
            found[noun].append(verb)
    return {noun: sorted(verbs) for noun, verbs in found.items()}


def _fish(
    valued: Iterable[str],
    after: Iterable[str],
    by_command: Iterable[tuple[str, str]],
    follows: Mapping[str, Iterable[str]],
    things: Mapping[str, str],
) -> str:
    """The script for fish, whose patterns are quoted and whose lists are words."""

    def case(name: str, word: str) -> str:
        patterns = f"'{name}' '{name} *'" if name in COMMANDS else f"'{name}'"
        return f"    case {patterns}\n      set offered {word}"

    return _FISH.substitute(
        valued=" ".join(valued),
        valued_after=" ".join(after),
        valued_by_command=" ".join(
            f"'{name} {option}' '{name} * {option}'" for name, option in by_command
        ),
        cases="\n".join(case(name, " ".join(words)) for name, words in follows.items()),
        things="\n".join(
            f"    case '{name}'\n      set things {of}" for name, of in things.items()
        ),
        options="\n".join(f"    case --{kind}\n      set things {kind}" for kind in THINGS),
    )


def _cases(follows: dict[str, list[str]]) -> Iterator[str]:
    """A branch for each command, complete or followed by its arguments."""
    for name, words in follows.items():
        pattern = f'"{name}" | "{name} "*' if name in COMMANDS else f'"{name}"'
        yield f'    {pattern}) offered="{" ".join(words)}" ;;'
