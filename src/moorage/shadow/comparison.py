"""Whether two answers to one request mean the same: pure.

Lists are compared without their order, links are left out, and of errors the status and the code
count. Candidates that a `limit` has cut off are compared with all that there are.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CANDIDATES: Final = "/allocation_candidates"
_REQUESTS: Final = "allocation_requests"
_SUMMARIES: Final = "provider_summaries"
_LIMIT: Final = "limit"
_LEFT_OUT: Final = frozenset({"links"})
_SHOWN: Final = 300
_SEVERAL: Final = 3
_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class Answered:
    """Status and body of an answer."""

    status: int
    body: bytes

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON
        """The body's JSON; None if it is none."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Unlike:
    """How two answers differ."""

    what: str
    """One of few: a kind, which is counted."""
    detail: str


def compared(
    path: str, query: str, theirs: Answered, ours: Answered, again: Callable[[str], Answered]
) -> Unlike | None:
    """How the answers differ; None if they mean the same.

    `again` gives our answer to another query.
    """
    if theirs.status != ours.status:
        return Unlike(f"status {theirs.status}, here {ours.status}", _reason(theirs, ours))
    if theirs.status >= _ERROR:
        codes = _code(theirs.document), _code(ours.document)
        return None if codes[0] == codes[1] else Unlike("code", f"{codes[0]}, here {codes[1]}")
    there, here = theirs.document, ours.document
    if path == CANDIDATES and isinstance(there, dict) and isinstance(here, dict):
        return _candidates(query, there, here, again)
    found = difference(there, here)
    return None if found is None else Unlike("body", found)


def _candidates(
    query: str,
    there: Mapping[str, Any],
    here: Mapping[str, Any],
    again: Callable[[str], Answered],
) -> Unlike | None:
    """How candidates differ, whatever their order is."""
    theirs, ours = _counted(there.get(_REQUESTS)), _counted(here.get(_REQUESTS))
    words = parse_qsl(query, keep_blank_values=True)
    if theirs != ours and any(name == _LIMIT for name, _ in words):
        without = urlencode([(name, text) for name, text in words if name != _LIMIT])
        every = _counted((again(without).document or {}).get(_REQUESTS))
        strange = theirs - every
        if strange or theirs.total() != ours.total():
            detail = f"{theirs.total()} there, {ours.total()} here of {every.total()}"
            some = f"; only there: {next(iter(strange))}" if strange else ""
            return Unlike("candidates", f"{detail}{some}"[:_SHOWN])
    elif theirs != ours:
        less, more = theirs - ours, ours - theirs
        detail = f"{less.total()} only there, {more.total()} only here"
        return Unlike("candidates", f"{detail}; one is {next(iter(less or more))}"[:_SHOWN])
    there_of, here_of = there.get(_SUMMARIES, {}), here.get(_SUMMARIES, {})
    both = there_of.keys() & here_of.keys()
    found = difference({one: there_of[one] for one in both}, {one: here_of[one] for one in both})
    return None if found is None else Unlike("summaries", found)


def _counted(items: object) -> Counter[str]:
    return Counter(_plain(one) for one in items) if isinstance(items, list) else Counter()


def _plain(value: object) -> str:
    return json.dumps(_canonical(value), sort_keys=True)


def _canonical(value: object) -> object:
    """Without order and without links."""
    if isinstance(value, dict):
        return {key: _canonical(one) for key, one in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return sorted(
            (_canonical(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True)
        )
    return value


def difference(there: object, here: object) -> str | None:
    """The first differences of two JSON values, in a short sentence; None if there is none."""
    found = list(islice(_differences(there, here, ""), _SEVERAL))
    return "; ".join(found)[:_SHOWN] or None


def _differences(there: object, here: object, where: str) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in sorted((there.keys() | here.keys()) - _LEFT_OUT):
            at = f"{where}.{key}".lstrip(".")
            if key in here and key in there:
                yield from _differences(there[key], here[key], at)
            else:
                yield f"{at} is only {'there' if key in there else 'here'}"
    elif isinstance(there, list) and isinstance(here, list):
        theirs, ours = _counted(there), _counted(here)
        less, more = theirs - ours, ours - theirs
        if less or more:
            some = next(iter(less or more))
            yield f"{where}: {less.total()} only there, {more.total()} only here; one is {some}"
    elif there != here:
        yield f"{where}: {there!r}, here {here!r}"


def _reason(theirs: Answered, ours: Answered) -> str:
    """What the one that is an error says."""
    for name, one in (("there", theirs), ("here", ours)):
        if one.status >= _ERROR:
            document = one.document
            errors = document.get("errors", []) if isinstance(document, dict) else []
            if errors:
                return f"{name}: {errors[0].get('detail', '')}".strip()[:_SHOWN]
    return ""


def _code(document: object) -> object:
    """The code of an error's document; the reference's default is as good as none."""
    if not isinstance(document, dict):
        return None
    code = next((one.get("code") for one in document.get("errors", [])), None)
    return None if code == "placement.undefined_code" else code
