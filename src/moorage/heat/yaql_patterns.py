"""Regular expressions of yaql, by RE2 and within the bounds of a template's work.

The library's functions of regular expressions call the methods that Python's own patterns have;
`Regex` has the same ones, and finds what those find, or refuses the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import pattern_syntax
from moorage.heat.pattern_syntax import STEPS_PER_VALUE, InvalidPattern, UnsupportedPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moorage.heat.pattern_syntax import Engine, Pattern

MAX_RESULT: Final = 10_000
"""Characters of a text in which matches were replaced: Heat's own bound of a value."""
_ESCAPE: Final = re.compile(
    r"\\(?:g<(?P<name>[^>]*)>|(?P<octal>0|[1-7][0-7]{2})|(?P<number>[1-9][0-9]?)"
    r"|(?P<control>[abfnrtv\\])|(?P<letter>[A-Za-z]?))"
)
"""An escape in the text that replaces a match."""
_CONTROLS: Final = dict(zip(r"abfnrtv\\", "\a\b\f\n\r\t\v\\", strict=False))


class Match:
    """A match, with the methods of Python's own."""

    __slots__ = ("_found", "_regex")

    def __init__(self, found: pattern_syntax.Match, regex: Regex) -> None:
        self._found = found
        self._regex = regex

    def start(self, group: int | str = 0) -> int:
        """Where it, or a group of it, starts."""
        return self._found.start(self._regex.number(group))

    def end(self, group: int | str = 0) -> int:
        """Where it, or a group of it, ends."""
        return self._found.end(self._regex.number(group))

    def group(self, group: int | str = 0) -> str | None:
        """What it, or a group of it, matched."""
        return self._found.group(self._regex.number(group))

    def groups(self) -> tuple[str | None, ...]:
        """What all groups matched."""
        return self._found.groups()

    def groupdict(self) -> dict[str, str | None]:
        """What the groups with names matched."""
        return {name: self.group(name) for name in self._regex.names}


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern, with the methods of Python's own that yaql calls."""

    source: str
    pattern: Pattern
    engine: Engine
    spend: Callable[[int], None]
    """Counts work, in values of a template."""

    @property
    def names(self) -> Mapping[str, int]:
        """Numbers of the groups that have names."""
        return self.engine.groupindex

    def number(self, group: int | str) -> int:
        """The number of a group.

        Raises:
            InvalidPattern: there is no such group.
        """
        number = self.names.get(group, -1) if isinstance(group, str) else group
        if not 0 <= number <= self.engine.groups:
            raise InvalidPattern(f"no such group: {group}")
        return number

    def search(self, text: str) -> Match | None:
        """The first match.

        Raises:
            UnsupportedPattern: in this text RE2 may find another one than Python.
        """
        pattern_syntax.check_text(self.pattern, self.source, text)
        return self._search(text, 0)

    def finditer(self, text: str) -> Iterator[Match]:
        """All matches.

        Raises:
            UnsupportedPattern: as `search` does, or the pattern may match the empty text.
        """
        if self.pattern.empty:  # the engines go on differently after an empty match
            raise UnsupportedPattern("repeated search for what may be empty is not supported")
        pattern_syntax.check_text(self.pattern, self.source, text)
        found = self._search(text, 0)
        while found is not None:
            yield found
            found = self._search(text, found.end())

    def split(self, text: str, most: int = 0) -> list[str | None]:
        """The text split at its matches, with what their groups matched."""
        parts: list[str | None] = []
        end = 0
        for found in self._first(text, most):
            parts += (text[end : found.start()], *found.groups())
            end = found.end()
        return [*parts, text[end:]]

    def sub(self, new: str | Callable[[Match], str], text: str, count: int = 0) -> str:
        """The text with its matches replaced.

        Raises:
            UnsupportedPattern: as `finditer` does, or the result is too long.
            InvalidPattern: the new text has an escape that means nothing.
        """
        made = new if callable(new) else self._template(new)
        parts: list[str] = []
        end, size = 0, 0
        for found in self._first(text, count):
            parts += (text[end : found.start()], made(found))
            size += len(parts[-1])
            if size > MAX_RESULT:
                raise UnsupportedPattern("a text that is too long")
            end = found.end()
        return "".join((*parts, text[end:]))

    def _first(self, text: str, most: int) -> Iterator[Match]:
        """So many matches; all of them for 0, none for less."""
        if most < 0:
            return
        for number, found in enumerate(self.finditer(text), 1):
            yield found
            if number == most:
                return

    def _search(self, text: str, at: int) -> Match | None:
        engine = self.engine
        steps = engine.programsize * (len(text) - at) * (1 + engine.groups)
        self.spend(1 + (len(text) + steps) // STEPS_PER_VALUE)
        found = engine.search(text, at)
        return None if found is None else Match(found, self)

    def _template(self, new: str) -> Callable[[Match], str]:
        """What makes the new text of a match."""
        pieces: list[str | int] = []
        end = 0
        for escape in _ESCAPE.finditer(new):
            pieces += (new[end : escape.start()], self._escaped(escape))
            end = escape.end()
        pieces.append(new[end:])

        def made(found: Match) -> str:
            return "".join(
                one if isinstance(one, str) else found.group(one) or "" for one in pieces
            )

        return made

    def _escaped(self, escape: re.Match[str]) -> str | int:
        """The number of the group that an escape stands for, or its text."""
        if (control := escape["control"]) is not None:
            return _CONTROLS[control]
        if (name := escape["name"] or escape["number"]) is not None:
            digits = name.isascii() and name.isdigit()
            return self.number(int(name[:4]) if digits else name)
        if escape["octal"] is not None:
            raise UnsupportedPattern("an octal number in the new text is not supported")
        if escape["letter"] or escape.end() == len(escape.string):
            raise InvalidPattern(f"bad escape {escape[0]}")
        return escape[0]


def regex(
    spend: Callable[[int], None],
    source: str,
    *,
    ignore_case: bool = False,
    multi_line: bool = False,
    dot_all: bool = False,
) -> Regex:
    """Read and compile a pattern.

    Raises:
        InvalidPattern: it is no regular expression.
        UnsupportedPattern: something in it has another meaning, or none, for RE2.
    """
    flags = "i" * ignore_case + "m" * multi_line + "s" * dot_all
    written = f"(?{flags}){source}" if flags else source
    spend(1 + len(written) ** 2 // STEPS_PER_VALUE)
    pattern = pattern_syntax.read(written)
    engine = pattern_syntax.compiled(pattern.source, never_capture=False)
    return Regex(written, pattern, engine, spend)
