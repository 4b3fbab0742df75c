"""SQL text, made once per database from SQLAlchemy's constructs, for the driver itself.

SQLAlchemy knows how each database wants a statement worded; running each one through it costs
several times what the driver and the database need (ADR-0004). So its constructs stay the only
place where SQL is written, and `StatementCompiler` compiles each of them once, as long as it lives.
Those that are made for one use are compiled once too, as far as they differ in nothing but the
values in them: SQLAlchemy's own cache key (`HasCacheKey`) tells what they have in common.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary, ref

from sqlalchemy import (
    ARRAY,
    BinaryExpression,
    BindParameter,
    ColumnElement,
    Insert,
    Select,
    Text,
    bindparam,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators, visitors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import ClauseElement, Dialect
    from sqlalchemy.sql.compiler import SQLCompiler

IN_LIST: Final = 500
"""Values of one IN list: few enough for every database."""


def chunks(values: Iterable[str]) -> Sequence[list[str]]:
    """Distinct values in lists short enough for one statement, in a stable order."""
    every = sorted(set(values))
    if len(every) <= IN_LIST:
        return [every] if every else ()
    return [every[start : start + IN_LIST] for start in range(0, len(every), IN_LIST)]


def only_chunk(values: Iterable[str]) -> Sequence[list[str]]:
    """The one list that `chunks` makes of the values; nothing where it makes none, or several."""
    every = chunks(values)
    return every if len(every) == 1 else ()


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
class CompiledStatement:
    """A statement as one database understands it."""

    text: str
    slots: Sequence[tuple[str | None, Any]]
    """Per placeholder the name of its parameter, or None and the value it always has."""
    spread: Mapping[str, int]
    """How many placeholders there are for the values of those among them that are lists."""
    row: Callable[[Any], Any] | None = field(default=None)
    """Makes a row of a tuple; known once the database has named the columns."""
    arguments: Callable[[Parameters], Sequence[Any]] = field(init=False)
    """The values for the placeholders; a KeyError if one is not given."""

    def __post_init__(self) -> None:
        # What is always the same gets a name that no parameter has: one look then finds it all.
        names = [f"={at}" if name is None else name for at, (name, _) in enumerate(self.slots)]
        fixed = {
            name: value for name, (of, value) in zip(names, self.slots, strict=True) if of is None
        }
        if list(self.spread.values()) == [1]:  # nearly always there is one list, of one value
            self.arguments = _of_one(names, fixed, next(iter(self.spread)))
            return
        self.arguments = _collector(names, fixed)
        if self.spread:
            self.arguments = _spreading(self.arguments, [self.spread.get(name) for name in names])

    def rows(self, columns: Sequence[str]) -> Callable[[Any], Any]:
        """What makes rows of these columns, from now on to be found in `row`."""
        self.row = _row_maker(tuple(columns))
        return self.row


def _collector(
    names: Sequence[str], fixed: Mapping[str, Any]
) -> Callable[[Parameters], Sequence[Any]]:
    """Looks up all these names among what is given and what is fixed."""
    if len(names) == len(fixed):
        every = tuple(fixed.values())
        return lambda _given: every
    if len(names) == 1:
        (name,) = names
        return lambda given: (given[name],)
    look = itemgetter(*names)
    return (lambda given: look({**given, **fixed})) if fixed else look


def _of_one(
    names: Sequence[str], fixed: Mapping[str, Any], one: str
) -> Callable[[Parameters], Sequence[Any]]:
    """As `_collector`, with the only item of the list of that name."""
    if len(names) == 1:
        return lambda given: (given[one][0],)
    look = itemgetter(*names)
    return lambda given: look({**given, **fixed, one: given[one][0]})


def _spreading(
    look: Callable[[Parameters], Sequence[Any]], rooms: Sequence[int | None]
) -> Callable[[Parameters], Sequence[Any]]:
    """As `look`, with the items of lists one by one, the last of them until the room is full."""

    def spread(given: Parameters) -> Sequence[Any]:
        found: list[Any] = []
        for value, room in zip(look(given), rooms, strict=True):
            if room is None:
                found.append(value)
            else:
                found += value
                found += value[-1:] * (room - len(value))
        return found

    return spread


@cache
def _row_maker(columns: tuple[str, ...]) -> Callable[[Any], Any]:
    """What makes a row of a tuple. The statements name the columns, so there are few kinds."""
    kind: Any = namedtuple("Row", columns, rename=True)  # type: ignore[misc]  # noqa: PYI024 - its fields are known at run time
    # As `_make` does, which counts the values first.
    return partial(tuple.__new__, kind)


def _plain(construct: ClauseElement) -> Any:  # noqa: ANN401 - any construct
    """The construct in words of ours where SQLAlchemy's would not do."""
    # Without this an insertion would ask for the number that its row was given.
    plain = construct.inline() if isinstance(construct, Insert) else construct
    return visitors.replacement_traverse(plain, {}, _with_lists)


@dataclass(slots=True)
class _Statement:
    """The texts of a construct, by the shape of what is given with it.

    It does not keep the construct: that would keep it known for ever, used again or not.
    """

    texts: dict[tuple[object, ...], CompiledStatement]
    inserts: bool = False
    lists: tuple[str, ...] = ()
    one_list: str | None = None
    """The only one of the lists, if there is one alone."""

    @classmethod
    def of(cls, construct: ClauseElement, *, arrays: bool) -> _Statement:
        """That of a construct that has not been worded yet."""
        inserts = isinstance(construct, Insert)
        among = (one for one in visitors.iterate(_plain(construct)) if isinstance(one, _Among))
        lists = () if arrays else tuple(one.name for one in among)
        return cls({}, inserts, lists, lists[0] if len(lists) == 1 else None)

    def rooms(self, given: Parameters) -> tuple[object, ...]:
        """How many placeholders the lists need."""
        return tuple([_room(len(given[name])) for name in self.lists])


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What questions have in common that differ in nothing but the values in them."""

    text: str
    slots: Sequence[tuple[str | None, Any]]
    """As those of `CompiledStatement`, with the values of the first such question."""
    own: Mapping[int, int]
    """Placeholders with values that each question has of its own, and their positions there."""

    def with_values(self, values: Sequence[BindParameter[Any]]) -> _Statement:
        """One of them, by the values that it has."""
        slots = list(self.slots)
        for number, place in self.own.items():
            slots[number] = (None, values[place].effective_value)
        return _Statement({(): CompiledStatement(self.text, slots, {})})


class StatementCompiler:
    """How one database words statements. Safe for threads: at worst a text is made twice."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._arrays = dialect.name == "postgresql"
        self._known: WeakKeyDictionary[ClauseElement, _Statement] = WeakKeyDictionary()
        known: Any = self._known
        self._look: Callable[[object], _Statement | None] = known.data.get
        """The same by reference, without a call of Python's."""
        self._patterns: dict[object, _Pattern] = {}
        """As many as the code has ways to ask."""

    def compiled(self, construct: ClauseElement, given: Parameters) -> CompiledStatement:
        """The text of a construct for parameters like these."""
        statement = self._look(ref(construct))
        if statement is None:
            statement = self._known[construct] = self._met(construct)
        # The text depends on the columns of an insertion, and on the lengths of lists. What nearly
        # every one is, costs no call: this is done for each statement of a commit.
        if statement.inserts:
            shape: tuple[object, ...] = tuple(given)
        elif statement.one_list is not None and len(given[statement.one_list]) == 1:
            shape = _ONE
        else:
            shape = statement.rooms(given) if statement.lists else ()
        found = statement.texts.get(shape)
        if found is None:
            found = statement.texts[shape] = self._word(construct, statement, given)
        return found

    def _met(self, construct: ClauseElement) -> _Statement:
        """A construct that is new; perhaps others were like it."""
        # The one thing that is not public: SQLAlchemy offers its cache to its own engines alone.
        key = construct._generate_cache_key() if isinstance(construct, Select) else None  # noqa: SLF001
        if key is None or any(one.expanding for one in key.bindparams):
            # The text of a list depends on its length.
            return _Statement.of(construct, arrays=self._arrays)
        pattern = self._patterns.get(key.key)
        if pattern is None:
            pattern = self._patterns[key.key] = self._pattern(construct, key.bindparams)
        return pattern.with_values(key.bindparams)

    def _pattern(self, construct: ClauseElement, values: Sequence[BindParameter[Any]]) -> _Pattern:
        compiled: Any = construct.compile(dialect=self.dialect)
        places = {one: place for place, one in enumerate(values)}
        slots: list[tuple[str | None, Any]] = []
        own: dict[int, int] = {}
        for number, name in enumerate(compiled.positiontup or ()):
            bound = compiled.binds[name]
            slots.append(_slot(name, compiled))
            # A limit is worded by a clone of what the key has.
            if not bound.required and (origins := bound._cloned_set & places.keys()):  # noqa: SLF001
                own[number] = places[origins.pop()]
        return _Pattern(str(compiled), slots, own)

    def _word(
        self, construct: ClauseElement, statement: _Statement, given: Parameters
    ) -> CompiledStatement:
        compiled: Any = _plain(construct).compile(
            dialect=self.dialect,
            column_keys=list(given) if statement.inserts and given else None,
            compile_kwargs={"render_postcompile": True},
        )
        text, order = str(compiled), compiled.positiontup or ()
        # In the order of the text, which may name one list several times.
        for name in order:
            if name in statement.lists:
                text = _spread_once(text, _room(len(given[name])))
        slots = [_slot(name, compiled) for name in order]
        return CompiledStatement(
            text, slots, {name: _room(len(given[name])) for name in statement.lists}
        )


_ONE: Final[tuple[object, ...]] = (1,)
"""The shape of a statement whose only list has one value."""


def _room(length: int) -> int:
    """Placeholders for a list: one of few numbers, for each of them makes another text."""
    return 1 << (length - 1).bit_length() if length else 0


def _spread_once(text: str, length: int) -> str:
    before, _, after = text.partition(_LIST)
    start = before.rfind("(") + 1
    return before[:start] + ", ".join([before[start:]] * length) + after


def _slot(name: str, compiled: Any) -> tuple[str | None, Any]:  # noqa: ANN401 - SQLAlchemy's own
    bound: BindParameter[Any] | None = compiled.binds.get(name)
    # A value of a list that the construct itself holds has a name of its own.
    return (name, None) if bound is not None and bound.required else (None, compiled.params[name])
