"""Evaluates yaql expressions within bounds of time and memory; needs the extra `yaql`.

The library reads and evaluates them, with the limits that Heat has by default (elements of a
collection, bytes of a value). Those do not bound the work, so here are bounds of our own: every
call of a function costs, and so does the size of what it yields, counted through all collections.
Left out are functions that one call makes expensive (powers, shifts), that say something else every
time (random numbers, times), and regular expressions, which can take for ever.
"""

from __future__ import annotations

from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import MoorageError
from moorage.heat.scalars import unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.heat.yaml_tree import Plain

MAX_EXPRESSION: Final = 4_000
"""Characters of an expression: the library's own reader takes their square in the worst case."""
MAX_VALUE: Final = 10_000
"""Size of a value in an expression: its elements, and those of all collections in it."""
_OPTIONS: Final = {"yaql.limitIterators": 200, "yaql.memoryQuota": 10_000}
"""Heat's defaults."""
_PER_CALL: Final = 40
"""What the call of a function costs, in values of a template."""
_SIZE_PER_VALUE: Final = 20
_SQUARE_PER_VALUE: Final = 400
_LEFT_OUT: Final = ("random", "pow", "shiftBitsLeft", "shiftBitsRight")
_MOST_DIGITS: Final = 400


class YaqlError(Exception):
    """The expression has no value here; the message says why."""


@dataclass(frozen=True, slots=True)
class _Meter:
    """Counts the work of one evaluation."""

    spend: Callable[[int], None]

    def measure(self, value: object) -> None:
        """Count a value by its size.

        Raises:
            YaqlError: it is too large.
        """
        left = _left(value, MAX_VALUE)
        if left < 0:
            raise YaqlError(f"a value of more than {MAX_VALUE} elements")
        self.spend((MAX_VALUE - left) // _SIZE_PER_VALUE)


_meter: ContextVar[_Meter] = ContextVar("yaql meter")


def _left(value: object, room: int) -> int:
    """What is left of the room after the value; negative when there is too little."""
    room -= 1
    for one in _elements(value):
        if room < 0:
            break
        room = _left(one, room)
    return room


def _elements(value: object) -> Iterable[object]:
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if hasattr(value, "values") and hasattr(value, "keys"):
        return (*value.keys(), *value.values())
    return ()


def is_available() -> bool:
    """Whether the library is installed."""
    return _library() is not None


def evaluate(expression: str, data: Plain, spend: Callable[[int], None]) -> Plain:
    """The value of an expression, in which `$.data` is the data.

    Args:
        expression: the expression.
        data: lists, mappings and scalars.
        spend: is called with the cost of each step, in values of a template; may raise.

    Raises:
        YaqlError: it cannot be read, fails, or exceeds a limit.
    """
    library = _library()
    if library is None:
        raise YaqlError("the extra yaql is not installed")
    if len(expression) > MAX_EXPRESSION:
        raise YaqlError(f"longer than {MAX_EXPRESSION} characters")
    spend(_PER_CALL + len(expression) ** 2 // _SQUARE_PER_VALUE)
    token = _meter.set(_Meter(spend))
    try:
        return library.value(expression, data)
    except (MoorageError, YaqlError):
        raise
    except Exception as error:  # whatever the library, or a function of it, finds
        message = (str(error).splitlines() or [""])[0][:200]
        raise YaqlError(f"{message or type(error).__name__}") from error
    finally:
        _meter.reset(token)


@dataclass(frozen=True, slots=True)
class _Library:
    """The library, prepared once."""

    engine: Any
    context: Any
    statement: Any

    def value(self, expression: str, data: Plain) -> Plain:
        # The reader keeps its state in itself, so each evaluation has its own.
        parser, lexer = copy(self.engine.parser), self.engine.lexer.clone()
        read = self.statement(parser.parse(expression, lexer=lexer), self.engine)
        found: Plain = read.evaluate({"data": data}, self.context.create_child_context())
        return found


@cache
def _library() -> _Library | None:
    try:
        yaql = import_module("yaql")
    except ImportError:
        return None
    language = {
        name: import_module(f"yaql.language.{name}")
        for name in ("contexts", "conventions", "expressions", "specs")
    }
    context = yaql.create_context(
        context=_metered(language),
        finalizer=language["specs"].name("#finalize")(_finalized),
        regex=False,
        datetime=False,
        yaqlized=False,
    )
    _restrict(context)
    return _Library(yaql.YaqlFactory().create(_OPTIONS), context, language["expressions"].Statement)


def _metered(language: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the library has no types
    """A context that counts every look-up of a function: each call begins with one."""

    class Metered(language["contexts"].Context):  # type: ignore[misc] # as above
        def collect_functions(self, *args: object, **named: object) -> object:
            _meter.get().spend(_PER_CALL)
            return super().collect_functions(*args, **named)

    return Metered(convention=language["conventions"].CamelCaseConvention())


def _restrict(context: Any) -> None:  # noqa: ANN401 - as above
    """Leave functions out, and measure what the others yield."""
    layer = context
    while layer is not None:
        functions = layer._functions  # noqa: SLF001 - the library lists them nowhere else
        for name in _LEFT_OUT:
            functions.pop(name, None)
        for name, definitions in functions.items():
            for one in definitions:
                one.payload = _measured(_BOUNDED.get((name, one.payload.__name__), one.payload))
        layer = layer.parent


def _measured(function: Callable[..., object]) -> Callable[..., object]:
    @wraps(function)
    def measured(*args: object, **named: object) -> object:
        found = function(*args, **named)
        _meter.get().measure(found)
        return found

    return measured


def _replace(string: str, old: str, new: str, count: int = -1) -> str:
    found = string.count(old)
    if count >= 0:
        found = min(found, count)
    if len(string) + found * len(new) > _OPTIONS["yaql.memoryQuota"]:
        raise YaqlError("a text that is too long")
    return string.replace(old, new, count)


def _replace_each(
    string: str, str_func: Callable[[object], str], replacements: Mapping[Any, Any], count: int = -1
) -> str:
    for key, value in replacements.items():
        string = _replace(string, str_func(key), str_func(value), count)
    return string


def _list_times(left: Sequence[object], right: int, engine: object) -> object:  # noqa: ARG001 - as the library hands it in
    if len(left) * right > MAX_VALUE:
        raise YaqlError(f"a value of more than {MAX_VALUE} elements")
    return left * right  # type: ignore[operator] # what a list is to the library can be multiplied


def _times_list(left: int, right: Sequence[object], engine: object) -> object:
    return _list_times(right, left, engine)


def _round(number: float, ndigits: int = 0) -> float:
    if abs(ndigits) > _MOST_DIGITS:
        raise YaqlError("so many digits")
    return round(number, ndigits)


_BOUNDED: Final[Mapping[tuple[str, str], Callable[..., object]]] = {
    ("replace", "replace"): _replace,
    ("replace", "replace_with_dict"): _replace_each,
    ("round", "round_"): _round,
    ("#operator_*", "list_by_int"): _list_times,
    ("#operator_*", "int_by_list"): _times_list,
}
"""Names of functions, in the language and in the library -> bounded ones that do the same."""


def _finalized(obj: object) -> Plain:
    """The value of an expression as plain lists and mappings."""
    return _Plainly().value(obj)


@dataclass(slots=True)
class _Plainly:
    """Makes a value plain, within the bound of its size."""

    room: int = MAX_VALUE

    def value(self, value: Any) -> Plain:  # noqa: ANN401 - any value of an expression
        self.room -= 1
        if self.room < 0:
            raise YaqlError(f"a value of more than {MAX_VALUE} elements")
        if value is None or isinstance(value, str | int | float):
            if (why := unwritable(value)) is not None:
                raise YaqlError(why)
            return value
        if hasattr(value, "items"):
            return {self._key(key): self.value(one) for key, one in self._some(value.items())}
        if isinstance(value, set | frozenset) or not hasattr(value, "__iter__"):
            raise YaqlError(f"the value is a {type(value).__name__}, which is none of a template")
        return [self.value(one) for one in self._some(value)]

    def _some(self, values: Iterable[Any]) -> Iterable[Any]:
        most = _OPTIONS["yaql.limitIterators"]
        for number, one in enumerate(values):
            if number >= most:
                raise YaqlError(f"more than {most} elements")
            yield one

    def _key(self, key: object) -> str:
        text = key if isinstance(key, str) else str(key) if isinstance(key, int | float) else None
        if text is None:
            raise YaqlError(f"a key of a mapping is text, not a {type(key).__name__}")
        if (why := unwritable(text)) is not None:
            raise YaqlError(why)
        return text
