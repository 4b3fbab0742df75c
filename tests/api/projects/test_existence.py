"""Another project's thing answers exactly as one that does not exist: status, body and headers."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest
from tests.api.projects import requests
from tests.api.projects.test_two_projects import ANN, BOB, READS, every_request
from tests.api.projects.two_projects import ANY, UUID, Answer, Doors, Owned, opened, own_everything

from moorage.api.native.openapi import document
from moorage.api.native.routes import ROUTES
from moorage.wire.fields import UUID_PATTERN

DEPTH: Final = 6
REFERRING: Final = "/v1/ensembles?"
"""Whose fields are tried with names, too: the roles of other requests are the same."""
Pairs: TypeAlias = "dict[str, tuple[str, str]]"
"""What it is -> another project's, and one that does not exist."""
HOLE: Final = re.compile(r"\{(\w+)\}")
WITHIN: Final = {"member", "policy"}
"""Names within another thing, which is what may not exist."""
NOTHING_TOLD: Final = re.compile(
    r"req-[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[0-9:.]+Z|CUSTOM_RESERVATION_\w+"
    r'|"domains":\{[^}]*\}|"(wall_ms|revision)":[0-9.]+'
)
"""What differs from answer to answer."""


UNLIKE: Final = ("PUT", "/v1/stacks/{ensemble}?dry_run=true")
"""A stack's id is chosen by Heat: see the page about the security model."""


@pytest.fixture
def doors() -> Iterator[Doors]:
    yield from opened()


def _absent(owned: Owned) -> dict[str, str]:
    """Ids and names of the same form, of which nothing has any."""
    found = {}
    for what, id_ in owned.ids.items():
        found[what] = id_ if what in WITHIN else str(uuid.uuid5(uuid.NAMESPACE_URL, what))
    return found | {"project": "zqproject-none-1111"}


def _filled(text: str, known: dict[str, str]) -> str:
    return HOLE.sub(lambda found: known.get(found[1], found[0]), text)


def _dry(method: str, template: str, path: str) -> str:
    """The request to a native route as a dry run, where it can be one."""
    (route,) = (one for one in ROUTES if (one.method, one.path) == (method, template))
    if "dry_run" not in route.parameters or "dry_run" in path:
        return path
    return path + ("&" if "?" in path else "?") + "dry_run=true"


def _every_dry_request() -> Iterator[tuple[str, str, str, Any]]:
    for mount, method, path, body in every_request():
        if mount != "/v1":
            yield mount, method, path, body
    for (method, template), some in requests.NATIVE.items():
        for path, body in some:
            yield "/v1", method, _dry(method, template, path), body


def _told(answer: Answer, known: dict[str, str]) -> tuple[int, str]:
    text = answer.told
    for what, id_ in known.items():
        text = text.replace(id_, f"<{what}>")
    text = UUID.sub("<id>", NOTHING_TOLD.sub("", text))
    return answer.status, re.sub(r"(?m)^(content-length|date): .*$", "", text)


def test_what_is_anothers_is_as_what_is_not(doors: Doors) -> None:
    ann = own_everything(doors, ANN)
    own_everything(doors, BOB)
    provider = doors.service.store.snapshot().uuids[0]
    theirs = {**ann.ids, "project": ANN.project, "provider": provider}
    none = _absent(ann) | {"provider": provider}
    found, differing = 0, []
    for mount, method, path, body in _every_dry_request():
        source = json.dumps(body)
        if not HOLE.search(path + source):
            continue
        match = {} if method in READS or mount == "/placement" else ANY
        told: list[tuple[int, str]] = []
        for known in (theirs, none):
            asked = None if body is None else json.loads(_filled(source, known))
            where = mount + _filled(path, known)
            told.append(_told(doors.ask(BOB, method, where, asked, **match), known))
        found += 1
        if told[0] != told[1]:
            differing.append((method, mount + path, body, *told))
    assert found > 80
    assert [one for one in differing if one[:2] != UNLIKE] == []
    assert len(differing) == 1, "the exception is one"


@dataclass(frozen=True)
class Field:
    """A string in the body of a request, by the OpenAPI document."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]

    @property
    def is_id(self) -> bool:
        """Whether it refers to something; `test_idempotency_keys` has the keys."""
        key = "Idempotency key" in self.schema.get("description", "")
        return self.schema.get("pattern") == UUID_PATTERN and not key

    @property
    def is_name(self) -> bool:
        """Whether it may be anything's name."""
        return not {"enum", "pattern", "const"} & self.schema.keys() and (
            self.schema.get("maxLength") in {64, 128, 140, 255}
        )


def _fields(
    schema: Any, known: dict[str, Any], path: tuple[str | int, ...] = ()
) -> Iterator[Field]:
    """Every string within a schema; of lists the first element."""
    schema = known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for one in schema.get("anyOf", ()):
        yield from _fields(one, known, path)
    if len(path) > DEPTH:
        return
    if schema.get("type") == "string":
        yield Field(path, schema)
    for name, inner in schema.get("properties", {}).items():
        yield from _fields(inner, known, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], known, (*path, 0))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _fields(schema["additionalProperties"], known, (*path, "some"))


def _with(body: Any, path: tuple[str | int, ...], value: str) -> Any:
    """A copy with the value at the path, and what is missing on the way."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        some: list[Any] = body if isinstance(body, list) and body else [{}]
        return [_with(some[0], rest, value), *some[1:]]
    there: dict[str, Any] = body if isinstance(body, dict) else {}
    return {**there, step: _with(there.get(step, {}), rest, value)}


def _bases(doors: Doors, own: dict[str, str]) -> Iterator[tuple[str, str, Any, list[Field]]]:
    """Method, path and body of a request of each operation that has a body, and its strings."""
    api = document(ROUTES)
    for route in ROUTES:
        operation = api["paths"][re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)][
            route.method.lower()
        ]
        if "requestBody" not in operation:
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        fields = list(_fields(schema, api["components"]["schemas"]))
        tried = []
        for path, body in requests.NATIVE[route.method, route.path]:
            where = "/v1" + _filled(_dry(route.method, route.path, path), own)
            asked = json.loads(_filled(json.dumps(body), own))
            tried.append((doors.ask(BOB, route.method, where, asked, **ANY).status, where, asked))
        _, where, asked = min(tried, key=lambda one: one[0])
        yield route.method, where, asked, fields


def test_a_body_that_names_what_is_anothers_is_as_one_that_names_nothing(doors: Doors) -> None:
    """Each string in the body of each operation, with each id or name of another project."""
    ann, bob = own_everything(doors, ANN), own_everything(doors, BOB)
    none = _absent(ann)
    ids: Pairs = {what: (id_, none[what]) for what, id_ in ann.ids.items() if what not in WITHIN}
    names = {what: ids[what] for what in ("template", "server", "ensemble", "share")} | {
        "project": (ann.who.project, "zqproject-none-1111"),
        "name": (ann.name("template"), "zqtemplate-none-1111"),
    }
    tried: set[str] = set()
    differing = []
    for method, where, base, fields in _bases(doors, bob.ids | {"project": BOB.project}):
        for field in fields:
            some = (
                ids
                if field.is_id
                else names
                if field.is_name and where.startswith(REFERRING)
                else {}
            )
            for what, pair in some.items():
                told = []
                for value in pair:
                    body = _with(base, field.path, value)
                    told.append(_told(doors.ask(BOB, method, where, body, **ANY), {what: value}))
                tried.add(f"{method} {where} {field.path}")
                if told[0] != told[1]:
                    differing.append((method, where, field.path, what, *told))
    assert len(tried) > 40
    assert differing == []


def test_a_marker_of_anothers_claim_is_as_one_of_none(doors: Doors) -> None:
    ann, bob = own_everything(doors, ANN), own_everything(doors, BOB)
    where = f"/v1/decisions/{bob.ids['decision']}/claims?marker="
    told = [
        _told(doors.ask(BOB, "GET", where + one["claim"]), {"claim": one["claim"]})
        for one in (ann.ids, _absent(ann))
    ]
    assert told[0] == told[1]
    assert told[0][0] == 404
