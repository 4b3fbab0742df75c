"""A reader for the regular expressions that Python and RE2 interpret alike.

A pattern in Python's syntax is read once and written again for RE2. What is outside of that part is
an `UnsupportedPattern`, which names it.

Python's own engine backtracks: `(a|.)(a|.)…b` takes 2^n steps, with the interpreter's lock held.
RE2 keeps the order of alternatives (the leftmost-first match of `re.match`), so that both end a
match at the same character. A pattern that RE2 does not match exactly as Python does is refused
with `UnsupportedPattern`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import re2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_REPEAT: Final = 1000
"""Largest number in braces; RE2's own bound, for nested repetitions multiplied."""
_FLAGS: Final = "ims"
_CONTROLS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class InvalidPattern(ValueError):
    """The pattern is not a regular expression."""


class UnsupportedPattern(ValueError):
    """The pattern is not supported; the message says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as RE2 reads it, and what it depends on."""

    source: str
    ascii: bool
    """Whether it asks for kinds of characters, or for either case: alike only in ASCII."""
    ends: bool
    """Whether it asks for the end by `$`, which in Python stands before a last line feed, too."""
    empty: bool
    """Whether it may match the empty text."""


def read(source: str) -> Pattern:
    """Read a pattern of Python's syntax.

    Raises:
        InvalidPattern: it is no regular expression.
        UnsupportedPattern: something in it has another meaning, or none, for RE2.
    """
    if len(source) > MAX_PATTERN:
        raise UnsupportedPattern(f"it is longer than {MAX_PATTERN} characters")
    return _Reader(source).pattern()


@dataclass(slots=True)
class _Group:
    """A group being read: whether its content so far can match the empty text."""

    start: int
    branches: bool = False
    """One of the alternatives before this one."""
    items: bool = True
    """All items of this alternative but the last one."""
    last: bool = True
    """Its last item, which a repetition may follow."""

    def add(self, *, empty: bool) -> None:
        self.items &= self.last
        self.last = empty

    def next_branch(self) -> None:
        self.branches |= self.items and self.last
        self.items = self.last = True


class _Reader:
    """Reads a pattern once from left to right, and writes the equivalent for RE2."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._written: list[str] = []
        self._names: set[str] = set()
        self._groups = [_Group(0)]
        """Those still open, around all of them the pattern."""
        self._repeats: str | None = "nothing to repeat"
        """Why a repetition cannot stand here; None where it can."""
        self._ascii = False
        self._ends = False

    def pattern(self) -> Pattern:
        """The whole pattern.

        Raises:
            Malformed, Unmatched: see `read`.
        """
        self._global_flags()
        while self._at < len(self._source):
            self._piece(self._take())
        if len(self._groups) > 1:
            raise self._invalid("a group is not closed", self._groups[-1].start)
        whole = self._groups[0]
        whole.next_branch()
        return Pattern("".join(self._written), self._ascii, self._ends, whole.branches)

    def _piece(self, character: str) -> None:
        match character:
            case "\\":
                self._escape()
            case "[":
                self._set()
            case "(":
                self._group()
            case ")":
                self._close()
            case "|":
                self._groups[-1].next_branch()
                self._write("|", "nothing to repeat")
            case "^" | "$":
                self._ends |= character == "$"
                self._assert(character)
            case "*" | "+" | "?":
                self._repeat(character, character != "+", character != "?")
            case "{" if (bounds := self._braces()) is not None:
                self._repeat(*bounds)
            case ".":
                self._item(".")
            case _:
                self._item(_literal(character))

    def _take(self) -> str:
        if self._at == len(self._source):
            raise self._invalid("it ends too early")
        self._at += 1
        return self._source[self._at - 1]

    def _next_is(self, text: str) -> bool:
        return self._source.startswith(text, self._at)

    def _write(self, text: str, repeats: str | None) -> None:
        self._written.append(text)
        self._repeats = repeats

    def _item(self, text: str) -> None:
        """Write an item that matches one character."""
        self._groups[-1].add(empty=False)
        self._write(text, None)

    def _assert(self, text: str) -> None:
        """Write an assertion, which matches a position."""
        self._groups[-1].add(empty=True)
        self._write(text, "nothing to repeat")

    def _invalid(self, what: str, at: int | None = None) -> InvalidPattern:
        return InvalidPattern(f"{what} at character {self._at if at is None else at}")

    def _unsupported(self, what: str) -> UnsupportedPattern:
        return UnsupportedPattern(f"{what} (at character {self._at}) is not supported")

    def _global_flags(self) -> None:
        end = self._source.find(")")
        flags = self._source[2:end]
        if self._next_is("(?") and flags and not flags.strip(_FLAGS):
            self._ascii |= "i" in flags
            self._written.append(f"(?{flags})")
            self._at = end + 1

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise self._invalid("nothing to close")
        done = self._groups.pop()
        done.next_branch()
        self._groups[-1].add(empty=done.branches)
        self._write(")", None)

    def _group(self) -> None:
        self._groups.append(_Group(self._at))
        if not self._next_is("?"):
            self._write("(", "nothing to repeat")
            return
        self._take()
        if self._next_is("P<"):
            self._write(f"(?P<{self._name()}>", "nothing to repeat")
            return
        start = self._at
        colon = self._source.find(":", start)
        flags = self._source[start:colon] if colon >= 0 else "?"
        if flags.removeprefix("-").strip(_FLAGS) or flags == "-":
            raise self._unsupported(f"(?{self._source[start : start + 2]}")
        self._ascii |= "i" in flags
        self._at = colon + 1
        self._write(f"(?{flags}:", "nothing to repeat")

    def _name(self) -> str:
        end = self._source.find(">", self._at)
        name = self._source[self._at + 2 : end]
        if end < 0 or not name.isidentifier() or name in self._names:
            raise self._invalid("a group's name that is none, or taken")
        self._names.add(name)
        self._at = end + 1
        return name

    def _repeat(self, bounds: str, optional: bool, several: bool) -> None:  # noqa: FBT001 - in the order of `_braces`
        if self._repeats is not None:
            raise self._invalid(self._repeats)
        group = self._groups[-1]
        if several and group.last:
            # The engines differ in when they leave the loop: `(|a)*` matches "a", or nothing.
            raise self._unsupported("the repetition of what may be empty")
        group.last |= optional
        if self._next_is("+"):
            raise self._unsupported(f"the possessive {bounds}+")
        lazy = self._next_is("?")
        self._at += lazy
        self._write(bounds + "?" * lazy, "multiple repeat")

    def _braces(self) -> tuple[str, bool, bool] | None:
        """What stands in braces after this one, as RE2 writes it; None where it is plain text.

        With it, whether none at all will do, and whether several may follow each other.
        """
        end = self._source.find("}", self._at)
        low, comma, high = self._source[self._at : max(end, self._at)].partition(",")
        if not (low or comma) or any(n and not (n.isascii() and n.isdigit()) for n in (low, high)):
            return None
        if any(len(n.lstrip("0")) > len(str(MAX_REPEAT)) for n in (low, high)):
            raise self._unsupported("so many repetitions")
        least, most = int(low or 0), int(high) if high else None
        if most is not None and most < least:
            raise self._invalid("more at least than at most")
        if max(least, most or 0) > MAX_REPEAT:
            raise self._unsupported("so many repetitions")
        self._at = end + 1
        if not comma:
            most = least
        written = f"{{{least},{'' if most is None else most}}}"
        return written, least == 0, most is None or most > 1

    def _escape(self) -> None:
        character = self._take()
        match character:
            case "A":
                self._assert(r"\A")
            case "Z":
                self._assert(r"\z")
            case "b":
                self._ascii = True
                self._assert(r"\b")
            case _:
                self._item(self._class(character) or _literal(self._character(character)))

    def _class(self, letter: str) -> str | None:
        """A kind of characters, such as digits."""
        if letter not in "dDsSwW":
            return None
        self._ascii = True
        return f"\\{letter}"

    def _character(self, letter: str) -> str:
        """The one character that an escape stands for."""
        if letter in _CONTROLS:
            return chr(_CONTROLS[letter])
        if letter == "x":
            digits = self._take() + self._take()
            if any(one not in "0123456789abcdefABCDEF" for one in digits):
                raise self._invalid(r"\x takes two digits")
            return chr(int(digits, 16))
        if letter.isascii() and letter.isdigit():
            raise self._unsupported(f"the back reference or octal number \\{letter}")
        if letter.isascii() and letter.isalpha():
            raise self._unsupported(f"the escape \\{letter}")
        return letter

    def _set(self) -> None:
        start = self._at
        negated = self._next_is("^")
        self._at += negated
        items: list[str] = []
        while not (self._next_is("]") and items):
            low, single = self._member(start)
            if not self._next_is("-") or self._next_is("-]"):
                items.append(low)
                continue
            self._take()
            high, also = self._member(start)
            if single is None or also is None or single > also:
                raise self._invalid("a range of characters that is none")
            items.append(f"{low}-{high}")
        self._take()
        self._item(f"[{'^' * negated}{''.join(items)}]")

    def _member(self, start: int) -> tuple[str, str | None]:
        """A character of a set, or (with None) a kind of characters."""
        if self._at == len(self._source):
            raise self._invalid("a set is not closed", start)
        character = self._take()
        if character == "\\":
            letter = self._take()
            kind = self._class(letter)
            if kind is not None:
                return kind, None
            character = self._character(letter)
        elif character == "[" or (character in "-&~|" and self._next_is(character)):
            raise self._unsupported(f"{character} inside a set")
        return _literal(character), character


def _literal(character: str) -> str:
    """A character escaped to mean itself."""
    if not character.isascii() or character.isalnum():
        return character
    return f"\\x{{{ord(character):x}}}"


MAX_PATTERN: Final = 512
"""Characters of a pattern."""
MAX_TEXT: Final = 4096
"""Characters of the text that a pattern is matched with."""
MAX_MEMORY: Final = 256 * 1024
"""Bytes of one compiled pattern: about 4,000 instructions."""
STEPS_PER_VALUE: Final = 100
"""Steps of the engine that cost about as much as one value of a template does."""

_SPACES: Final = frozenset("\v\x1c\x1d\x1e\x1f")
"""Spaces to Python, not to RE2."""


class Engine(Protocol):
    """A compiled pattern of RE2."""

    @property
    def programsize(self) -> int:
        """Number of instructions."""

    @property
    def groups(self) -> int:
        """Number of groups that keep what they match."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Numbers of the groups that have names."""

    def match(self, text: str) -> Match | None:
        """The match that starts at the text's start."""

    def search(self, text: str, pos: int) -> Match | None:
        """The first match that starts there or later."""


class Match(Protocol):
    """A match."""

    def start(self, group: int = 0) -> int:
        """Where it, or a group of it, starts; -1 for a group that matched nothing."""

    def end(self, group: int = 0) -> int:
        """Where it, or a group of it, ends."""

    def group(self, group: int = 0) -> str | None:
        """What it, or a group of it, matched."""

    def groups(self) -> tuple[str | None, ...]:
        """What all groups matched."""


def matches(source: str, text: str, spend: Callable[[int], None]) -> bool:
    """Whether `re.match` finds a match of the pattern that ends where the text does.

    Args:
        source: the pattern.
        text: the whole text.
        spend: is called beforehand with the cost of the match, in values of a template.

    Raises:
        InvalidPattern: the pattern is no regular expression.
        UnsupportedPattern: RE2 cannot match it, or might give it another meaning than Python does.
    """
    pattern = read(source)
    check_text(pattern, source, text)
    engine = compiled(pattern.source, never_capture=True)
    spend(1 + engine.programsize * len(text.encode()) // STEPS_PER_VALUE)
    found = engine.match(text)
    return found is not None and found.end() == len(text)


def check_text(pattern: Pattern, source: str, text: str) -> None:
    """Refuse a text in which the engines might find something else.

    Raises:
        UnsupportedPattern: as it says, or the text is too long.
    """
    if len(text) > MAX_TEXT:
        raise UnsupportedPattern(f"the value is longer than {MAX_TEXT} characters")
    if pattern.ascii and (not (source + text).isascii() or _SPACES.intersection(text)):
        raise UnsupportedPattern(
            "kinds and cases of characters beyond ASCII are not the same everywhere"
        )
    if pattern.ends and text.endswith("\n"):
        raise UnsupportedPattern("$ before a last line feed is not supported")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedPattern("half a surrogate pair is no text") from error


@lru_cache(maxsize=64)
def compiled(source: str, *, never_capture: bool) -> Engine:
    """A pattern that was read, compiled; with `never_capture` no group keeps what it matches.

    Raises:
        UnsupportedPattern: RE2 cannot match it.
    """
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = never_capture
    try:
        engine: Engine = re2.compile(source, options)
    except (re2.error, UnicodeEncodeError) as error:
        said = str(error.args[0]) if error.args else str(error)
        raise UnsupportedPattern(f"RE2 says: {said}") from error
    return engine
