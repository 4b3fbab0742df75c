"""Requests broken on purpose: bodies, queries, headers, paths and methods."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.fuzz.sides import Call
from tests.fuzz.world import NEWEST, World

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 1.5, 2.0, 2**31, 2**31 - 1, 10**20, 1e39),
    *("", "x", " ", "VCPU", "é", "a" * 300, [], {}, [1], ["a", "a"], {"a": 1}, {"": {}}),
)
"""Values where others are expected."""

RAW: Final = (b"", b" ", b"{", b"[]", b"null", b"1", b'"x"', b'{"a": 1,}', b"\xff", b'{"a": 1} x')
"""Bodies that are no objects, or no JSON."""


BODY_TYPES: Final = (
    *("application/JSON", "Application/json", "application/json;charset=latin-1", "", "json"),
    *("application/json ; charset=utf-8", " application/json", "application/json, text/plain"),
)
"""Types of bodies, hardly one of them written as the reference wants it."""

ACCEPTED: Final = (
    *("application/json", "application/JSON", "APPLICATION/*", "*/*", "", "garbage", "a/b/c"),
    *("application/json;q=0", "application/json;q=0, */*", "application/json;version=1"),
    *("text/html, application/JSON;q=0.5", "application/json;q=2", "text/*;q=0.2, */*;q=0"),
)
"""Accept headers, some of which accept JSON."""


def spoiled(world: World, call: Call) -> Call:
    """The same request with one thing wrong; now and then nothing is."""
    kinds = [_header, _version, _method, _query, _path]
    if call.body is not None:
        kinds = [*([_body] * 8), _raw, *kinds]
    once = world.random.choice(kinds)(world, call)
    # Two things wrong show which of them is refused first.
    again = [_header, _version, _method, _query, _path]
    return world.random.choice(again)(world, once) if world.chance(0.3) else once


def _body(world: World, call: Call) -> Call:
    body = copy.deepcopy(call.body)
    holders = list(_holders(body))
    if not holders:
        return replace(call, body=world.random.choice(ODD))
    holder = world.random.choice(holders)
    key = world.random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = world.random.random()
    if kind < 0.25:
        del holder[key]
    elif kind < 0.4 and isinstance(holder, dict):
        name = world.random.choice(["extra", "mappings", "consumer_type", "", "VCPU", "uuid"])
        holder[name] = world.random.choice(ODD)
    elif kind < 0.55 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[key] = world.random.choice(ODD)
    return replace(call, body=body)


def _holders(value: Any) -> list[Any]:
    """Every object and list inside that is not empty."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [*([value] if value else []), *(one for part in inner for one in _holders(part))]


def _raw(world: World, call: Call) -> Call:
    return replace(call, raw=world.random.choice(RAW))


def _header(world: World, call: Call) -> Call:
    name, value = world.random.choice(
        [
            ("content-type", None),
            ("content-type", "text/plain"),
            ("content-type", "application/json; charset=utf-8"),
            *(("content-type", value) for value in BODY_TYPES),
            *(("accept", value) for value in ACCEPTED),
            ("accept", "text/html"),
            ("accept", "text/plain"),
            ("accept", "application/xml"),
            ("accept", "text/html, */*;q=0.1"),
            ("x-auth-token", None),
            ("x-auth-token", "nobody"),
            ("x-auth-token", "user:admin"),
            ("x-roles", "service"),
            ("x-roles", "reader"),
            ("x-roles", ""),
            ("openstack-system-scope", "all"),
        ]
    )
    return call.with_header(name, value)


def _version(world: World, call: Call) -> Call:
    header = world.random.choice(
        [
            None,
            *(
                "placement pony.horse",
                "placement 1",
                "placement",
                "placement 1.40",
                "placement 0.9",
            ),
            *("placement latest", "placement 2.0", "compute 2.1", "compute 2.1, placement 1.10"),
            *("Placement 1.20", "placement 1.-1", "placement 1.1.1", "placement 01.10", ""),
            *("placement 1.039", "placement 1.040", "placement 1.00", "placement  1.10 "),
            *("placement\t1.10", "placement 1. 10", "placement +1.10", "placement 1_0.1"),
            *("placement 1.10, placement", "placement 1.1_0", "placement,placement 1.3"),
            *("placement LATEST", "placement 1.10 x"),
            *[f"placement 1.{world.random.randint(0, NEWEST)}"] * 12,
        ]
    )
    return call.with_header("openstack-api-version", header)


def _method(world: World, call: Call) -> Call:
    methods = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "COPY", "get")
    return replace(call, method=world.random.choice(methods))


def _query(world: World, call: Call) -> Call:
    path, _, query = call.path.partition("?")
    parts = query.split("&") if query else []
    odd: list[Callable[[], str]] = [
        lambda: "colour=red",
        lambda: "limit=" + world.random.choice(["0", "-1", "x", "", "1.0", "%201", "99999999999"]),
        lambda: "resources=" + world.random.choice(["", "VCPU", "VCPU:0", "VCPU:x", "VCPU:1:1"]),
        lambda: "resources=" + world.random.choice(["VCPU:-1", "VCPU:1,", ",VCPU:1", "vcpu:1"]),
        lambda: "resources1=" + world.random.choice(["VCPU:1", "VCPU:1,VCPU:2", "NOPE:1"]),
        lambda: "required=" + world.random.choice(["", "!", ",", "in:", "!!CUSTOM_T", "CUSTOM_T,"]),
        lambda: "required1=" + world.random.choice(["CUSTOM_T", "in:CUSTOM_T,!CUSTOM_U"]),
        lambda: "required=CUSTOM_T,!CUSTOM_T",
        lambda: "member_of=" + world.random.choice(["", "x", "in:", "!", "a,b", "in:a,b", "!in:x"]),
        lambda: "in_tree=" + world.random.choice(["", "x", "in:x"]),
        lambda: "uuid=" + world.random.choice(["", "x"]),
        lambda: "same_subtree=" + world.random.choice(["", "1", "1,2", ",", "9"]),
        lambda: (
            "root_required=" + world.random.choice(["", "!", "in:CUSTOM_T", "NOPE", "COMPUTE_NODE"])
        ),
        lambda: "group_policy=" + world.random.choice(["", "maybe", "none", "isolate"]),
        lambda: "consumer_type=" + world.random.choice(["", "x", "ALL"]),
        lambda: "user_id=" + world.random.choice(["", "u" * 256]),
        lambda: "project_id=" + world.random.choice(["", "p" * 256]),
        lambda: world.random.choice(parts) if parts else "name=x&name=y",
        lambda: "name=" + world.random.choice(["", "in:x", "startswith", "n" * 201, "%C3%A9"]),
        lambda: "name=" + world.random.choice(["%FF", "startswith:custom", "startswith:CUSTOM%25"]),
    ]
    kind = world.random.random()
    if parts and kind < 0.3:
        parts.remove(world.random.choice(parts))
    elif parts and kind < 0.4:
        position = world.random.randrange(len(parts))
        parts[position] = parts[position].partition("=")[0] + world.random.choice(["", "="])
    else:
        parts.append(world.random.choice(odd)())
    query = world.random.choice("&&&;").join(parts)
    return replace(call, path=f"{path}?{query}" if query else path)


def _path(world: World, call: Call) -> Call:
    path, mark, query = call.path.partition("?")
    segments = (path or "/").split("/")
    kind = world.random.random()
    if kind < 0.3:
        segments.append("")
    elif kind < 0.5:
        segments.append("more")
    elif kind < 0.7:
        segments[-1] = segments[-1].upper() if kind < 0.6 else segments[-1].lower()
    else:
        segments[-1] = world.random.choice(["x", "", "%20", "%C3%A9", "a" * 300, "CUSTOM_" * 40])
    return replace(call, path="/".join(segments) + mark + query)
