"""The HTTP server is a package by itself: it could be taken out of Moorage as it is."""

import ast
import sys
from pathlib import Path

import pytest

import moorage.http.transport

HERE = moorage.http.transport.__name__
FILES = sorted(Path(moorage.http.transport.__path__[0]).rglob("*.py"))


def names(node: ast.AST) -> list[str]:
    """What a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_imports_the_standard_library_its_parser_and_itself(file: Path) -> None:
    found = [name for node in ast.walk(ast.parse(file.read_text())) for name in names(node)]
    allowed = sys.stdlib_module_names | {"httptools"}
    strangers = [
        name
        for name in found
        if name.partition(".")[0] not in allowed and not f"{name}.".startswith(f"{HERE}.")
    ]
    assert strangers == []
