"""SQL text, made once per database from SQLAlchemy's constructs, for the driver itself.

SQLAlchemy knows how each database wants a statement worded; running each one through it costs
several times what the driver and the database need (ADR-0004). So its constructs stay the only
place where SQL is written, and `Speech` words each of them once, as long as it lives: those made
where a module is loaded once and for all, those made for one use each time.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from sqlalchemy import (
    ARRAY,
    BinaryExpression,
    BindParameter,
    ColumnElement,
    Insert,
    Text,
    bindparam,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators, visitors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import ClauseElement, Dialect
    from sqlalchemy.sql.compiler import SQLCompiler

Parameters: TypeAlias = "Mapping[str, Any]"

_LIST: Final = " /* list */"
"""Follows the one placeholder of a list, which is repeated as often as the list is long."""


class _Among(ColumnElement[bool]):
    """`column IN` a list that comes with the parameters, worded as suits the database."""

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name


@compiles(_Among)
def _as_placeholders(element: _Among, compiler: SQLCompiler, **more: Any) -> str:  # noqa: ANN401
    bound = compiler.process(bindparam(element.name, type_=Text), **more)
    return f"{compiler.process(element.column, **more)} IN ({bound}{_LIST})"


@compiles(_Among, "postgresql")
def _as_array(element: _Among, compiler: SQLCompiler, **more: Any) -> str:  # noqa: ANN401
    """One text, and so one prepared statement, for lists of every length."""
    bound = compiler.process(bindparam(element.name, type_=ARRAY(Text)), **more)
    return f"{compiler.process(element.column, **more)} = ANY ({bound})"


def _with_lists(element: Any, **_: object) -> _Among | None:  # noqa: ANN401 - any construct
    """Replaces `column.in_(bindparam(..., expanding=True))`."""
    if isinstance(element, BinaryExpression) and element.operator is operators.in_op:
        right = element.right
        if isinstance(right, BindParameter) and right.expanding and right.required:
            return _Among(element.left, right.key)
    return None


@dataclass(slots=True)
class Worded:
    """A statement as one database understands it."""

    text: str
    slots: Sequence[tuple[str | None, Any]]
    """Per placeholder the name of its parameter, or None and the value it always has."""
    spread: frozenset[str]
    """Names among them whose values take a placeholder each."""
    row: Callable[[Any], Any] | None = field(default=None)
    """Makes a row of a tuple; known once the database has named the columns."""
    arguments: Callable[[Parameters], Sequence[Any]] = field(init=False)
    """The values for the placeholders; a KeyError if one is not given."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.slots if name is not None]
        # Several of them, and nothing else: as nearly always where there are many.
        plain = len(names) == len(self.slots) > 1 and not self.spread
        self.arguments = itemgetter(*names) if plain else self._gathered

    def _gathered(self, given: Parameters) -> Sequence[Any]:
        if not self.spread:
            return [value if name is None else given[name] for name, value in self.slots]
        found: list[Any] = []
        for name, value in self.slots:
            if name in self.spread:
                found.extend(given[name])
            else:
                found.append(value if name is None else given[name])
        return found

    def rows(self, columns: Callable[[], Sequence[str]]) -> Callable[[Any], Any]:
        """What makes rows; `columns` names the columns, and is asked once."""
        if self.row is None:
            kind: Any = namedtuple("Row", columns(), rename=True)  # type: ignore[misc]  # noqa: PYI024 - its fields are known at run time
            # As `_make` does, which counts the values first.
            self.row = partial(tuple.__new__, kind)
        return self.row


def _plain(construct: ClauseElement) -> Any:  # noqa: ANN401 - any construct
    """The construct in words of ours where SQLAlchemy's would not do."""
    # Without this an insertion would ask for the number that its row was given.
    plain = construct.inline() if isinstance(construct, Insert) else construct
    return visitors.replacement_traverse(plain, {}, _with_lists)


class _Statement:
    """The texts of a construct, by the shape of what is given with it.

    It does not keep the construct: that would keep it known for ever, used again or not.
    """

    __slots__ = ("inserts", "lists", "texts", "varies")

    def __init__(self, construct: ClauseElement, *, arrays: bool) -> None:
        self.inserts = isinstance(construct, Insert)
        found = visitors.iterate(_plain(construct))
        lists = (one.name for one in found if isinstance(one, _Among))
        self.lists = () if arrays else tuple(lists)
        self.varies = self.inserts or bool(self.lists)
        self.texts: dict[tuple[object, ...], Worded] = {}

    def shape(self, given: Parameters) -> tuple[object, ...]:
        """What the text depends on: the columns of an insertion, the lengths of lists."""
        if self.inserts:
            return tuple(given)
        return tuple(len(given[name]) for name in self.lists)


class Speech:
    """How one database words statements. Safe for threads: at worst a text is made twice."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._arrays = dialect.name == "postgresql"
        self._known: WeakKeyDictionary[ClauseElement, _Statement] = WeakKeyDictionary()

    def worded(self, construct: ClauseElement, given: Parameters) -> Worded:
        """The text of a construct for parameters like these."""
        statement = self._known.get(construct)
        if statement is None:
            statement = self._known[construct] = _Statement(construct, arrays=self._arrays)
        shape = statement.shape(given) if statement.varies else ()
        found = statement.texts.get(shape)
        if found is None:
            found = statement.texts[shape] = self._word(construct, statement, given)
        return found

    def _word(self, construct: ClauseElement, statement: _Statement, given: Parameters) -> Worded:
        compiled: Any = _plain(construct).compile(
            dialect=self.dialect,
            column_keys=list(given) if statement.inserts and given else None,
            compile_kwargs={"render_postcompile": True},
        )
        text, order = str(compiled), compiled.positiontup or ()
        # In the order of the text, which may name one list several times.
        for name in order:
            if name in statement.lists:
                text = _spread_once(text, len(given[name]))
        slots = [_slot(name, compiled) for name in order]
        return Worded(text, slots, frozenset(statement.lists))


def _spread_once(text: str, length: int) -> str:
    before, _, after = text.partition(_LIST)
    start = before.rfind("(") + 1
    return before[:start] + ", ".join([before[start:]] * length) + after


def _slot(name: str, compiled: Any) -> tuple[str | None, Any]:  # noqa: ANN401 - SQLAlchemy's own
    bound: BindParameter[Any] | None = compiled.binds.get(name)
    # A value of a list that the construct itself holds has a name of its own.
    return (name, None) if bound is not None and bound.required else (None, compiled.params[name])
