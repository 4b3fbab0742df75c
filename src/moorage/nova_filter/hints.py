"""What the body of a request that creates a server says about its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HINTS: Final = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")
HINT: Final = "moorage"
CLAIM: Final = "moorage_claim"
"""Added to a request that has the hint `moorage`, with the id of its claim; see `host_filter`."""
GROUP: Final = "group"
RESERVATION: Final = "reservation"
ENSEMBLE: Final = "moorage:ensemble"
MEMBER: Final = "moorage:member"
STACK: Final = "heat_root_stack_id"
STACK_PATH: Final = "heat_path_in_stack"
STACK_RESOURCE: Final = "heat_resource_name"
"""Hints that Heat adds to each server of a stack where its `stack_scheduler_hints` is set."""
METADATA: Final = "metadata"
IMPORTED: Final = ("moorage:imported_from", "nova")
"""Metadata of an ensemble that was imported from a server group of Nova's."""
JOINABLE: Final = ("moorage:members", "join")
"""Metadata of an ensemble whose members come with their servers, as a server group's do."""
FAULTS: Final = {
    400: "badRequest",
    403: "forbidden",
    404: "itemNotFound",
    409: "conflictingRequest",
    503: "serviceUnavailable",
}
"""The names of Nova's faults by status."""

_REFERENCE: Final = re.compile(
    r"(?P<ensemble>[^/]+)(/(?P<role>[^\[\]]+)(\[(?P<index>\d{1,6})\])?)?"
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Refusal(Exception):
    """The request is refused with this status and message; nova-api does not see it."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        """`code` is that of Moorage's error, where it refused."""
        super().__init__(message)
        self.status = status if status in FAULTS else HTTPStatus.BAD_REQUEST
        self.message = message
        self.code = code.rpartition(".")[2]


@dataclass(frozen=True)
class Place:
    """The place that a request names."""

    ensemble: str
    """An id or a name."""
    role: str | None = None
    index: int | None = None
    named_by: str = HINT
    """`moorage`, `group`, `metadata` or `heat_root_stack_id`. A group may be Nova's own, metadata
    is on every server of an ensemble, and Heat's hints are on every server of a stack: only the
    hint `moorage` insists on a place, and Heat's on an answer."""
    path: str | None = None
    """Where the server is in its stack, with Heat's hints: `web/0`."""
    names: tuple[str, ...] = ()
    """With a path: the members that are there."""

    @property
    def told(self) -> str:
        """The members that it names, in words."""
        if self.path is not None:
            return self.path
        if self.role is None:
            return "any member"
        return self.role if self.index is None else f"{self.role}[{self.index}]"

    def is_one(self, member: Mapping[str, Any]) -> bool:
        """Whether a member is one of those that a place names, if it may name several."""
        if self.path is not None:
            return member["name"] in self.names
        return self.role is None or member["role"] == self.role

    @property
    def one_name(self) -> str | None:
        """The name of the only member that it names; None: it may name several."""
        if self.path is not None:
            return self.names[0] if len(self.names) == 1 else None
        return None if self.index is None else f"{self.role}[{self.index}]"


def named_places(request: Any) -> list[Place]:  # noqa: ANN401 - any JSON value
    """The places that a body of POST /servers names, in the order in which they are tried.

    After a place of the server's Heat stack comes another, for a stack that Moorage does not know.

    Raises:
        Refusal: it names one in a way that cannot be understood.
    """
    if not isinstance(request, dict) or not isinstance(request.get("server"), dict):
        return []
    server = request["server"]
    hints = _hints(request)
    insisting = _from_hint(hints)
    if insisting is not None:
        return [insisting]
    metadata = server.get("metadata") if isinstance(server.get("metadata"), dict) else {}
    other = _from_metadata(metadata)
    group = hints.get(GROUP)
    if other is None and isinstance(group, str) and is_uuid(group):
        other = Place(group, named_by=GROUP)
    return [place for place in (_from_stack(hints), other) if place is not None]


def _from_hint(hints: Mapping[str, Any]) -> Place | None:
    text = _only(hints.get(HINT))
    if text is None:
        return None
    match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise Refusal(
            400, f"hint moorage: not <ensemble>, <ensemble>/<role> or .../<role>[i]: {text!r}"
        )
    index = match["index"]
    return Place(match["ensemble"], match["role"], None if index is None else int(index))


def _from_metadata(metadata: Mapping[str, Any]) -> Place | None:
    ensemble, member = metadata.get(ENSEMBLE), metadata.get(MEMBER)
    if not isinstance(ensemble, str) or not isinstance(member, str):
        return None
    match = _REFERENCE.fullmatch(f"{ensemble}/{member}")
    if match is None or match["index"] is None:
        return None
    return Place(match["ensemble"], match["role"], int(match["index"]), METADATA)


def _from_stack(hints: Mapping[str, Any]) -> Place | None:
    """The place of a server that Heat creates; each hint of Heat's is a list of texts.

    Each text of the path but the root's own is `resource,stack`.
    """
    root, name = (_only(hints.get(key)) for key in (STACK, STACK_RESOURCE))
    steps = hints.get(STACK_PATH)
    if not (is_uuid(root) and isinstance(name, str) and isinstance(steps, list)):
        return None
    above = [str(one).rpartition(",")[0] for one in steps[1:]]
    return Place(str(root), named_by=STACK, path="/".join([*above, name]))


def members_at(keys: Mapping[str, str], path: str) -> tuple[str, ...]:
    """The members at a path in a stack; `keys` is member -> path.

    Members of an autoscaling group have numbers in `keys` and random names in the stack: any of
    them is meant.
    """
    exact = tuple(name for name, key in keys.items() if key == path)
    if exact:
        return exact
    steps = path.split("/")
    return tuple(name for name, key in keys.items() if _is_one_name_apart(key.split("/"), steps))


def _is_one_name_apart(numbered: list[str], named: list[str]) -> bool:
    """Whether the paths differ in one step, which is a number in the first alone."""
    if len(numbered) != len(named):
        return False
    apart = [pair for pair in zip(numbered, named, strict=True) if pair[0] != pair[1]]
    return len(apart) == 1 and apart[0][0].isdecimal() and not apart[0][1].isdecimal()


def named_reservation(request: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """The id of the reservation that a body of POST /servers names; None: none.

    Raises:
        Refusal: it names one in a way that cannot be understood.
    """
    if not isinstance(request, dict) or not isinstance(request.get("server"), dict):
        return None
    named = _only(_hints(request).get(RESERVATION))
    if named is None:
        return None
    if not is_uuid(named):
        raise Refusal(400, f"hint reservation: not the id of a reservation: {named!r}")
    return str(named).lower()


def _only(value: object) -> object:
    """The value of a hint, which may stand in a list of its own."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _hints(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((request[key] for key in HINTS if isinstance(request.get(key), dict)), {})


def with_claim(request: Mapping[str, Any], claim: str) -> dict[str, Any]:
    """The body with the claim's id beside the hint `moorage`, which replaces `group`.

    Nova-api refuses groups that it does not know. Nova keeps hints for the server's life.
    """
    found = _with_hints(request, {GROUP: HINT, CLAIM: None})
    return {
        name: {**hints, CLAIM: claim} if name in HINTS and isinstance(hints, dict) else hints
        for name, hints in found.items()
    }


def with_claim_alone(request: Mapping[str, Any], claim: str) -> dict[str, Any]:
    """The body with the claim's id as its only new hint; see `host_weigher`."""
    key = next((key for key in HINTS if isinstance(request.get(key), dict)), HINTS[0])
    return {**request, key: {**request.get(key, {}), CLAIM: claim}}


def names_ensemble(request: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the server's metadata say of which ensemble it is."""
    server = request.get("server") if isinstance(request, dict) else None
    metadata = server.get("metadata") if isinstance(server, dict) else None
    return isinstance(metadata, dict) and ENSEMBLE in metadata


def without_place(request: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the hint `moorage`: the server gets an ordinary host."""
    return _with_hints(request, {HINT: None, CLAIM: None})


def _with_hints(request: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """The body with other names of hints; None: without them."""
    left = dict(request)
    for key in HINTS:
        if isinstance(left.get(key), dict):
            hints = ((names.get(name, name), value) for name, value in left[key].items())
            left[key] = {name: value for name, value in hints if name is not None}
    return left


def is_imported(ensemble: Mapping[str, Any]) -> bool:
    """Whether Nova has a server group of the ensemble's id."""
    key, value = IMPORTED
    return bool((ensemble.get("metadata") or {}).get(key) == value)


def is_joinable(ensemble: Mapping[str, Any]) -> bool:
    """Whether a server that names the ensemble becomes a member of it."""
    key, value = JOINABLE
    return bool((ensemble.get("metadata") or {}).get(key) == value)


def several(server: Mapping[str, Any]) -> bool:
    """Whether a request asks for other than one server."""
    counts = (server.get("max_count"), server.get("min_count"))
    return any(str(count) not in {"None", "1"} for count in counts)


def from_volume(server: Mapping[str, Any]) -> bool:
    """Whether the server's root disk is a volume: Nova then asks for no room for it."""
    devices = server.get("block_device_mapping_v2")
    for one in devices if isinstance(devices, list) else ():
        if isinstance(one, dict) and str(one.get("boot_index")) == "0":
            local = "local" if one.get("source_type") == "image" else "volume"
            return bool(one.get("destination_type", local) == "volume")
    return not server.get("imageRef") and bool(server.get("block_device_mapping"))


def is_uuid(text: object) -> bool:
    """Whether it is a UUID with hyphens."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None
