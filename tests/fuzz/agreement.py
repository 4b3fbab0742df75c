"""What must be equal in two answers: status, headers, and the body without what nobody may rely on.

Not compared are the sentences of errors, request ids, dates, and order where the reference has
none. Of a list cut by `limit` only the length is compared: which are in it is nobody's promise.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz.sides import Answer, Call

ORDERED: Final = frozenset({"links", "resource_classes", "versions"})
"""Lists with an order that means something."""

_ERROR: Final = ("status", "title", "code", "min_version", "max_version")
_PRESENT: Final = ("last-modified", "x-openstack-request-id")


@dataclass(frozen=True)
class Disagreement:
    """A request, and what each side said."""

    call: Call
    ours: Answer
    theirs: Answer
    before: Sequence[Call] = ()
    """What was asked before it."""

    @property
    def kind(self) -> str:
        """Roughly what it is, to tell many of one kind from few of many."""
        here, there = normal(self.call, self.ours), normal(self.call, self.theirs)
        parts = [name for name in here if here[name] != there[name]]
        what = ", ".join(
            f"{name} {here[name]} / {there[name]}" if name == "status" else name for name in parts
        )
        segments = self.call.bare_path.split("/")
        shape = "/".join(part if len(part) < 25 else "*" for part in segments)
        return f"{self.call.method} {shape}: {what}"

    def __str__(self) -> str:
        told = [str(self.call)]
        sides = {"ours": self.ours, "theirs": self.theirs}
        entries = {name: _entries(self.call, answer) for name, answer in sides.items()}
        for name, answer in sides.items():
            other = entries["theirs" if name == "ours" else "ours"]
            only = [one for one in entries[name] if one not in other]
            body = "\n    ".join(only[:4]) or answer.raw.decode(errors="replace")[:600]
            told.append(f"  {name}: {answer.status} {dict(answer.headers)}")
            told.append(f"    {len(entries[name])} entries, {len(only)} only here: {body}")
        return "\n".join(told)


def _entries(call: Call, answer: Answer) -> list[str]:
    """The entries of a list, or the members of an object, as text."""
    body = normal(call, answer).get("body")
    if not isinstance(body, dict):
        return []
    return [
        f"{name}: {json.dumps(one, sort_keys=True)}"
        for name, value in body.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def agree(call: Call, ours: Answer, theirs: Answer) -> bool:
    """Whether nobody could tell one from the other."""
    return normal(call, ours) == normal(call, theirs)


def normal(call: Call, answer: Answer) -> dict[str, Any]:
    """An answer without what may differ."""
    headers = _headers(answer.headers)
    if call.method == "HEAD":  # its answer has no body, of whatever type
        headers.pop("content-type", None)
        return {"status": answer.status, "headers": headers}
    return {"status": answer.status, "headers": headers, "body": _body(call, answer)}


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name: "yes" if name in _PRESENT else value for name, value in headers.items()}
    if "allow" in found:
        found["allow"] = ", ".join(sorted(found["allow"].split(", ")))
    for name in ("content-type", "vary"):
        if name in found:
            found[name] = found[name].partition(";")[0].lower()
    return found


def _body(call: Call, answer: Answer) -> Any:
    content = answer.json
    if content is None:
        return bool(answer.raw)
    if isinstance(content, dict) and "errors" in content:
        return [{name: one.get(name) for name in _ERROR} for one in content["errors"]]
    if "limit=" in call.path and "allocation_requests" in content:
        return len(content["allocation_requests"])
    return _sorted(content)


def _sorted(value: Any, *, keep: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(one, keep=name in ORDERED) for name, one in value.items()}
    if isinstance(value, list):
        inner = [_sorted(one) for one in value]
        return inner if keep else sorted(inner, key=lambda one: json.dumps(one, sort_keys=True))
    return value
