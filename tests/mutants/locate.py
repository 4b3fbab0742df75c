"""Where drawn conditions are in a tree of sources in which code may have moved."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.mutants.conditions import NotFoundThere, mutated, places
from tests.mutants.draw import SOURCES, Home, Mutant


def found_at(tree: Path, mutant: Mutant) -> Sequence[Home]:
    """Where a mutant's condition may be in the tree: one home where that is certain.

    First where it is said to be (`new_home`, then the old home); then with its text in functions of
    the same name anywhere, then with its text alone.
    """
    for home in (mutant.new_home, mutant.home):
        if home is not None and is_there(tree, home):
            return [home]
    home = mutant.new_home or mutant.home
    anywhere = [
        replace(home, file=str(file.relative_to(tree)), function=function, ordinal=ordinal)
        for file in sorted((tree / SOURCES).rglob("*.py"))
        for function, ordinal in places(file.read_text(), home.text)
    ]
    last = home.function.rpartition(".")[2]
    same = [one for one in anywhere if one.function.rpartition(".")[2] == last]
    exact = [one for one in same if one.ordinal == home.ordinal]
    return exact if len(exact) == 1 else same or anywhere


def is_there(tree: Path, home: Home) -> bool:
    """Whether a condition is in the tree where the home says."""
    try:
        apply(tree, home, dry_run=True)
    except (FileNotFoundError, NotFoundThere):
        return False
    return True


def apply(tree: Path, home: Home, *, dry_run: bool = False) -> None:
    """Mutate a file of the tree.

    Raises:
        FileNotFoundError, NotFoundThere: the condition is not there.
    """
    file = tree / home.file
    text = mutated(file.read_text(), home.function, home.text, home.ordinal, home.mutation)
    if not dry_run:
        file.write_text(text)
