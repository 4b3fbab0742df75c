"""Conditions of a source file, their mutations, and where a condition is after its code has moved.

A condition is identified by what survives a move: its text, the function that it is in, and its
place among equal texts of that function. Texts are those of `ast.unparse`, so that layout does not
count.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_BESIDE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
"""Off by one."""
_OPPOSITE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CALLS: Final = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "and_": "or_",
    "or_": "and_",
}
_CLAUSES: Final = {"and_", "or_"}
_LEAVING: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_PLAIN_TESTS: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
MODULE: Final = "<module>"


@dataclass(frozen=True, slots=True)
class Condition:
    """One place in a file whose text can be replaced by any of its mutations."""

    function: str
    """Qualified name; of a statement outside functions, the name that it assigns."""
    text: str
    ordinal: int
    """Among equal texts in the function, from 0."""
    line: int
    mutations: tuple[str, ...]
    sharp: bool
    """Whether they change it a little: nearly any test notices the opposite of a condition."""


class NotFoundThere(LookupError):
    """The condition is not in that file and function."""


@dataclass(slots=True)
class _Reader(ast.NodeVisitor):
    """Collects every expression and `return`, with the function it is in, in the file's order."""

    scope: list[str] = field(default_factory=list)
    found: list[tuple[str, ast.expr | ast.Return]] = field(default_factory=list)
    guards: set[ast.expr] = field(default_factory=set)
    tests: set[ast.expr] = field(default_factory=set)

    def _inside(self, name: str, nodes: Sequence[ast.AST]) -> None:
        self.scope.append(name)
        for one in nodes:
            self.visit(one)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node.name, node.body)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion states what holds anyway."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts; and positions inside are not those of the file before Python 3.12."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if not self.scope and isinstance(target, ast.Name):
            self._inside(target.id, [value])
        else:
            self.visit(value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self.tests.add(node.test)
        if isinstance(node.body[-1], _LEAVING) and not node.orelse:
            self.guards.add(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.tests.add(node.test)
        self.generic(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.tests.update(node.ifs)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        self.found.append((self._name, node))
        self.generic_visit(node)

    def generic(self, node: ast.expr) -> None:
        """An expression: itself, then its parts."""
        self.found.append((self._name, node))
        self.generic_visit(node)

    def visit(self, node: ast.AST) -> None:
        """Every expression has no method of its own but a few."""
        if isinstance(node, ast.expr) and not hasattr(self, f"visit_{type(node).__name__}"):
            self.generic(node)
        else:
            super(_Reader, self).visit(node)

    @property
    def _name(self) -> str:
        return ".".join(self.scope) or MODULE


def conditions(source: str) -> Iterator[Condition]:
    """Every condition of a file that has mutations, in the file's order."""
    for reader, name, node, text, ordinal in _places(source):
        sharp = dict.fromkeys(one for one in _sharp(reader, node) if one != text)
        mutations = tuple(sharp or _opposite(reader, node))
        if mutations:
            yield Condition(name, text, ordinal, node.lineno, mutations, bool(sharp))


def mutated(source: str, function: str, text: str, ordinal: int, mutation: str) -> str:
    """The source with one condition replaced.

    Raises:
        NotFoundThere: no such text in the function.
    """
    for _, name, node, found, number in _places(source):
        if (name, found, number) == (function, text, ordinal):
            return _replaced(source, node, mutation)
    raise NotFoundThere(f"{function} has no condition {text!r} (number {ordinal})")


def places(source: str, text: str) -> list[tuple[str, int]]:
    """Functions of a file with a condition of this text, each with its ordinal."""
    return [(name, number) for _, name, _, found, number in _places(source) if found == text]


def _places(source: str) -> Iterator[tuple[_Reader, str, ast.expr | ast.Return, str, int]]:
    reader = _Reader()
    reader.visit(ast.parse(source))
    seen: Counter[tuple[str, str]] = Counter()
    for name, node in reader.found:
        text = ast.unparse(node)
        yield reader, name, node, text, seen[name, text]
        seen[name, text] += 1


def _replaced(source: str, node: ast.expr | ast.Return, text: str) -> str:
    """Columns of `ast` count bytes."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    new = text if isinstance(node, ast.Return) else f"({text})"
    return (before + new.encode() + after).decode()


def _sharp(reader: _Reader, node: ast.expr | ast.Return) -> Iterator[str]:
    """Mutations that change a condition in few cases."""
    if isinstance(node, ast.expr) and node in reader.guards:
        yield "False"
    if isinstance(node, ast.Compare):
        yield from _compared(node, _BESIDE)
    elif isinstance(node, ast.BoolOp):
        yield from _joined(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        if _is_clause(node.left) or _is_clause(node.right):
            other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
            yield ast.unparse(ast.BinOp(node.left, other, node.right))
            yield ast.unparse(node.left)
            yield ast.unparse(node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield from _called(node, node.func.id)


def _opposite(reader: _Reader, node: ast.expr | ast.Return) -> Iterator[str]:
    """The opposite of a condition."""
    if isinstance(node, ast.Return):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            yield f"return {not node.value.value}"
    elif isinstance(node, ast.Compare):
        yield from _compared(node, _OPPOSITE)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield ast.unparse(node.operand)
    elif node in reader.tests and isinstance(node, _PLAIN_TESTS):
        yield f"not {ast.unparse(node)}"


def _compared(node: ast.Compare, others: dict[type[ast.cmpop], type[ast.cmpop]]) -> Iterator[str]:
    for number, one in enumerate(node.ops):
        if type(one) in others:
            ops = [*node.ops[:number], others[type(one)](), *node.ops[number + 1 :]]
            yield ast.unparse(ast.Compare(node.left, ops, node.comparators))


def _joined(node: ast.BoolOp) -> Iterator[str]:
    yield ast.unparse(
        ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    )
    for number in range(len(node.values)):
        rest = [*node.values[:number], *node.values[number + 1 :]]
        yield ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))


def _called(node: ast.Call, name: str) -> Iterator[str]:
    """The other function; of clauses of a query also one clause less."""
    yield ast.unparse(ast.Call(ast.Name(_CALLS[name]), node.args, node.keywords))
    if name in _CLAUSES:
        for number in range(len(node.args)):
            rest = [*node.args[:number], *node.args[number + 1 :]]
            yield ast.unparse(ast.Call(node.func, rest, node.keywords))


def _is_clause(node: ast.expr) -> bool:
    """Whether it is a truth value, as far as can be seen: `|` also joins sets and types."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return _is_clause(node.left) or _is_clause(node.right)
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    )
