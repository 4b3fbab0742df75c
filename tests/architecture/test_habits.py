"""Small pieces, telling names, and packages that say what they are for."""

import ast
import re
from pathlib import Path

LIMIT = 500
"""Lines of a Python file. About 300 is the habit; this is the stop."""

SHAPELESS = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}
"""Names that say nothing about what is inside."""


def test_files_stay_small(root: Path, tracked: list[Path]) -> None:
    lengths = {
        str(path.relative_to(root)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked
        if path.suffix == ".py"
    }
    assert lengths, "found no Python files at all"
    long = {name: lines for name, lines in lengths.items() if lines > LIMIT}
    assert not long, f"split these by what they mean: {long}"


def test_names_say_what_is_inside(root: Path, tracked: list[Path]) -> None:
    found = [
        str(path.relative_to(root))
        for path in tracked
        if path.suffix == ".py"
        and SHAPELESS & set(Path(path.relative_to(root)).with_suffix("").parts)
    ]
    assert not found, f"name these for what they hold: {found}"


def says_what_lives_here(docstring: str | None) -> bool:
    """Whether a package docstring draws its border: what is in, and what is not."""
    if docstring is None:
        return False
    border = re.search(r"\b(no|not|never|none|nothing|only)\b", docstring, re.IGNORECASE)
    sentences = re.findall(r"[.;:](?:\s|$)", docstring)
    return bool(border and len(sentences) > 1)


def test_every_package_says_what_may_live_there(root: Path, package: Path) -> None:
    silent = [
        str(init.relative_to(root))
        for init in sorted(package.rglob("__init__.py"))
        if not says_what_lives_here(ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))))
    ]
    assert not silent, f"say in the docstring what may live here and what may not: {silent}"


def test_a_docstring_must_draw_the_border() -> None:
    assert not says_what_lives_here(None)
    assert not says_what_lives_here("The domain.")
    assert not says_what_lives_here("Values, arithmetic. Everything else too.")
    assert says_what_lives_here("Only frozen values live here; no socket, file or clock.")
