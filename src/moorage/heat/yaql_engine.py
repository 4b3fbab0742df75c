"""Evaluates yaql expressions within bounds of time and memory; needs the extra `yaql`.

The library reads and evaluates them, with the limits that Heat has by default (elements of a
collection, bytes of a value). Those do not bound the work, so here are bounds of our own: every
call of a function costs, so does the size of what it yields, counted through all collections, and
so does each element that an iterator yields, whoever asks for it. Regular expressions are matched
by RE2 (`yaql_patterns`). Left out are functions that one call makes expensive (powers, shifts), and
that say something else every time (random numbers, times).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import MoorageError
from moorage.heat import yaql_patterns
from moorage.heat.scalars import unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.heat.yaml_tree import Plain

MAX_EXPRESSION: Final = 4_000
"""Characters of an expression: the library's own reader takes their square in the worst case."""
MAX_VALUE: Final = 10_000
"""Size of a value in an expression: its elements, and those of all collections in it."""
_OPTIONS: Final = {"yaql.limitIterators": 200, "yaql.memoryQuota": 10_000}
"""Heat's defaults."""
_PER_CALL: Final = 40
"""What the call of a function costs, in values of a template."""
_PER_CONTEXT: Final = 10
"""What the context costs in which a lambda is worked out, in values of a template."""
_PER_ELEMENT: Final = 2
"""What an element of an iterator costs, in values of a template."""
_SIZE_PER_VALUE: Final = 2
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
        size = _size(value)
        if size > MAX_VALUE:
            raise YaqlError(f"a value of more than {MAX_VALUE} elements")
        self.spend(size // _SIZE_PER_VALUE)


_FREE: Final = _Meter(lambda _amount: None)
_meter: ContextVar[_Meter] = ContextVar("yaql meter", default=_FREE)
"""Free while the library is prepared."""


@dataclass(frozen=True, slots=True)
class _MeteredIterator(Iterator[object]):
    """An iterator of which every element costs: it may have no end."""

    source: Iterator[object]
    meter: _Meter

    def __iter__(self) -> _MeteredIterator:
        # One that remembers what it yielded begins anew each time.
        source = iter(self.source)
        return self if source is self.source else _MeteredIterator(source, self.meter)

    def __next__(self) -> object:
        self.meter.spend(_PER_ELEMENT)
        return next(self.source)

    def __repr__(self) -> str:
        return repr(self.source)


def _size(value: object) -> int:
    """The elements of a value, itself included; not all of them when there are too many."""
    size, waiting = 0, [value]
    while waiting and size <= MAX_VALUE:
        size += 1
        one = waiting.pop()
        if isinstance(one, list | tuple | set | frozenset):
            waiting.extend(one)
        elif isinstance(one, Mapping):
            waiting.extend(one.keys())
            waiting.extend(one.values())
    return size


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
        for name in ("contexts", "conventions", "expressions", "specs", "yaqltypes")
    }
    context = yaql.create_context(
        context=_metered(language),
        finalizer=language["specs"].name("#finalize")(_finalized),
        datetime=False,
        yaqlized=False,
    )
    _restrict(context, import_module("yaql.standard_library.regex").REGEX_TYPE)
    return _Library(yaql.YaqlFactory().create(_OPTIONS), context, language["expressions"].Statement)


def _metered(language: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the library has no types
    """A context that counts look-ups of functions, and the contexts of lambdas.

    Each call begins with a look-up. A lambda that only says a constant looks nothing up.
    """

    class Metered(language["contexts"].Context):  # type: ignore[misc] # as above
        def collect_functions(self, *args: object, **named: object) -> object:
            _meter.get().spend(_PER_CALL)
            return super().collect_functions(*args, **named)

        def create_child_context(self) -> object:
            _meter.get().spend(_PER_CONTEXT)
            return super().create_child_context()

    return Metered(convention=language["conventions"].CamelCaseConvention())


def _restrict(context: Any, regex_type: type) -> None:  # noqa: ANN401 - as above
    """Leave functions out, measure what the others yield, and give them patterns of our own."""
    layer = context
    while layer is not None:
        functions = layer._functions  # noqa: SLF001 - the library lists them nowhere else
        for name in _LEFT_OUT:
            functions.pop(name, None)
        for one in chain.from_iterable(functions.values()):
            for parameter in one.parameters.values():
                if getattr(parameter.value_type, "python_type", None) is regex_type:
                    parameter.value_type.python_type = yaql_patterns.Regex
            one.payload = _measured(_BOUNDED.get(_full_name(one.payload), one.payload))
        layer = layer.parent


def _measured(function: Callable[..., object]) -> Callable[..., object]:
    @wraps(function)
    def measured(*args: object, **named: object) -> object:
        meter = _meter.get()
        found = function(*args, **named)
        if isinstance(found, Iterator):
            return _MeteredIterator(found, meter)
        meter.measure(found)
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


def _regex(
    pattern: str,
    ignore_case: bool = False,  # noqa: FBT001, FBT002 - as the library hands it in
    multi_line: bool = False,  # noqa: FBT001, FBT002
    dot_all: bool = False,  # noqa: FBT001, FBT002
) -> yaql_patterns.Regex:
    return yaql_patterns.regex(
        _meter.get().spend,
        pattern,
        ignore_case=ignore_case,
        multi_line=multi_line,
        dot_all=dot_all,
    )


def _matches(string: str, regexp: str) -> bool:
    return _regex(regexp).search(string) is not None


def _matches_operator(string: str, pattern: str) -> bool:
    return _matches(string, pattern)


def _matches_not_operator(string: str, pattern: str) -> bool:
    return not _matches(string, pattern)


def _is_regex(value: object) -> bool:
    return isinstance(value, yaql_patterns.Regex)


_BOUNDED: Final[Mapping[str, Callable[..., object]]] = {
    "strings.replace": _replace,
    "strings.replace_with_dict": _replace_each,
    "math.round_": _round,
    "collections.list_by_int": _list_times,
    "collections.int_by_list": _times_list,
    "regex.regex": _regex,
    "regex.matches_": _matches,
    "regex.matches_operator_string": _matches_operator,
    "regex.not_matches_operator_string": _matches_not_operator,
    "regex.is_regex": _is_regex,
}
"""Modules and functions of the library -> bounded functions that do the same."""


def _full_name(function: Callable[..., object]) -> str:
    """The name of a function of the library, with its module."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


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
