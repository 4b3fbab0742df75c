"""Columns of listings and fields of one thing, in words: `id:short name #places held=hold:length`.

A word is a title, then `=` and the attribute where that has another name, then `:` and how it is
written. `_` in a title is a blank, `#` before it means a number; an attribute may be one of a part
(`role.name`). Lists are written with blanks between. `?` at the end leaves out what is empty.
"""

from __future__ import annotations

import re
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import clock_time, moment, short
from moorage.cli.times import actions, length, minute

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.cli.output import Columns

_WORD: Final = re.compile(
    r"(?P<title>#?[^=:?]+)(=(?P<of>[\w.]+))?(:(?P<written>\w+))?(?P<some>\?)?"
)
_WRITTEN: Final[dict[str, Callable[[Any], object]]] = {
    "actions": actions,
    "clock": clock_time,
    "length": length,
    "listed": ", ".join,
    "minute": minute,
    "moment": moment,
    "number": "{:g}".format,
    "or_dash": lambda value: value or "-",
    "short": short,
    "yes": lambda value: "yes" if value else "",
}


@cache
def columns(words: str) -> Columns:
    """The columns that these words say."""
    return dict(map(_column, words.split()))


def pairs(thing: object, words: str) -> list[tuple[str, object]]:
    """The fields of a thing that these words say, with their names."""
    return [(title, cell(thing)) for title, cell in columns(words).items()]


def _column(word: str) -> tuple[str, Callable[[Any], object]]:
    match = _WORD.fullmatch(word)
    assert match is not None, word
    attribute = attrgetter(match["of"] or match["title"].removeprefix("#"))
    write = _WRITTEN[match["written"]] if match["written"] else _cell
    only_some = match["some"] is not None

    def cell(thing: object) -> object:
        value = attribute(thing)
        return None if only_some and not value else write(value)

    return match["title"].replace("_", " "), cell


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value
