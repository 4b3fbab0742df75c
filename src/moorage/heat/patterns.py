"""Matches tenants' regular expressions with RE2, in time linear in the text.

Python's own engine backtracks: `(a|.)(a|.)…b` takes 2^n steps, with the interpreter's lock held.
RE2 keeps the order of alternatives (the leftmost-first match of `re.match`), so that both end a
match at the same character. A pattern that RE2 does not match exactly as Python does is refused
with `UnsupportedPattern`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import re2

from moorage.heat.pattern_syntax import UnsupportedPattern, read

if TYPE_CHECKING:
    from collections.abc import Callable

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

    def match(self, text: bytes) -> Match | None:
        """The match that starts at the text's start."""


class Match(Protocol):
    """A match."""

    def end(self) -> int:
        """Where it ends."""


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
    if len(source) > MAX_PATTERN:
        raise UnsupportedPattern(f"it is longer than {MAX_PATTERN} characters")
    if len(text) > MAX_TEXT:
        raise UnsupportedPattern(f"the value is longer than {MAX_TEXT} characters")
    pattern = read(source)
    if pattern.ascii and (not (source + text).isascii() or _SPACES.intersection(text)):
        raise UnsupportedPattern(
            "kinds and cases of characters beyond ASCII are not the same everywhere"
        )
    if pattern.ends and text.endswith("\n"):
        raise UnsupportedPattern("$ before a last line feed is not supported")
    try:
        encoded, written = text.encode(), pattern.source.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedPattern("half a surrogate pair is no text") from error
    engine = _compiled(written)
    spend(1 + engine.programsize * len(encoded) // STEPS_PER_VALUE)
    found = engine.match(encoded)
    return found is not None and found.end() == len(encoded)


@lru_cache(maxsize=64)
def _compiled(source: bytes) -> Engine:
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        engine: Engine = re2.compile(source, options)
    except re2.error as error:
        said = str(error.args[0]) if error.args else str(error)
        raise UnsupportedPattern(f"RE2 says: {said}") from error
    return engine
