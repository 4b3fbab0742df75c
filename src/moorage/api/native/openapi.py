"""The OpenAPI 3.1 document, made from the route table and the structs."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.api.native import protocol
from moorage.api.native.access import Access
from moorage.api.native.errors import TABLE
from moorage.api.native.paging import SORT_KEYS
from moorage.domain.leases import LeaseState
from moorage.domain.waitlist import EntryState
from moorage.wire import errors as wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.api.native.route import Route

JSON: Final = "application/json"
_HOLE: Final = re.compile(r"\{(\w+)(?::\w+)?\}")

QUERY: Final[dict[str, dict[str, Any]]] = {
    "limit": {"type": "integer", "minimum": 1},
    "sort_dir": {"type": "string", "enum": ["asc", "desc"]},
    "marker": {
        "type": "string",
        "description": "Id of the previous page's last item; the link `next` has it",
    },
    "dry_run": {"type": "boolean", "description": "Check and answer, but write nothing"},
    "all_projects": {"type": "boolean", "description": "Operators only"},
    "state": {
        "type": "string",
        "enum": [s.value for s in LeaseState if s is not LeaseState.OFFERED],
    },
    "status": {"type": "string", "enum": [s.value for s in EntryState]},
    "keep_resources": {"type": "boolean"},
    "cascade": {"type": "string", "enum": ["leases"]},
    "instance": {
        "type": "boolean",
        "description": "Include the problem to replay; operators only",
    },
    "from": {"type": "string", "format": "date-time", "description": "Default: now"},
    "to": {"type": "string", "format": "date-time", "description": "Default: 30 days later"},
    "zone": {"type": "string", "description": "A failure domain; tenants can name zones only"},
    "flavor": {"type": "string", "description": "How many of it fit; by id or name"},
    "resources": {"type": "string", "examples": ["VCPU:4,MEMORY_MB:8192"]},
    "required": {"type": "string", "description": "Traits: A,B|C,!D is A, one of B and C, no D"},
    "step": {
        "type": "string",
        "description": "Lowest value per step of this length, such as PT1H",
    },
    "max_points": {
        "type": "integer",
        "minimum": 1,
        "description": "At most so many steps: longer ones than `step` if need be",
    },
    "by": {
        "type": "string",
        "description": "A level, such as zone: a result for each domain",
    },
    "count": {"type": "integer", "minimum": 1, "description": "How many must fit"},
    "duration": {"type": "string", "description": "For how long, such as PT4H"},
    "after": {
        "type": "string",
        "description": "The cursor of the page before; `now` for what happens from now on",
    },
    "type": {"type": "string", "description": "Types or patterns such as lease.*, with commas"},
    "subject": {"type": "string", "description": "Ids of what events are about, with commas"},
    "wait": {
        "type": "string",
        "description": "How long to wait for an event, such as 20s; at most 30s",
    },
    "compliance": {
        "type": "boolean",
        "description": "Include present policy violations",
    },
    "ensemble": {"type": "string", "description": "Its id; of explanations also its name"},
    "host": {
        "type": "string",
        "description": "Those whose members are on this host now: its name or UUID; operators only",
    },
    "history": {"type": "boolean", "description": "Include violations that have ended"},
    "since": {"type": "string", "format": "date-time"},
}
_OF_VIOLATIONS: Final[dict[str, dict[str, Any]]] = {
    "state": {
        "type": "string",
        "enum": ["open", "ended", "all"],
        "description": "Default: those that last",
    },
    "type": {
        "type": "string",
        "description": "Types of policies, at_risk or lost, with commas",
    },
    "required": {"type": "boolean", "description": "Those of required, or of preferred policies"},
    "since": {
        "type": "string",
        "format": "date-time",
        "description": "Those that last, or ended later",
    },
}
"""Parameters that mean something else of violations."""
_OF_MAPS: Final[dict[str, dict[str, Any]]] = {
    "class": {"type": "string", "description": "Resource class; default: VCPU, or else another"},
    "at": {"type": "string", "format": "date-time", "description": "An instant; default: now"},
    "tree": {"type": "string", "description": "Default: location"},
    "level": {"type": "string", "description": "Its domains are the blocks; default: the lowest"},
    "flavor": {"type": "string", "description": "Counts how many of it fit from then on"},
    "trait": {"type": "string", "description": "Marks hosts without these: A,B|C,!D"},
    "ensemble": {"type": "string", "description": "Marks hosts without members of it"},
    "since": {"type": "string", "description": "The tag of a map: only what has changed since"},
}
"""Parameters of the map of the fleet."""
_FROM: Final[dict[str, Any]] = {
    "type": "string",
    "format": "date-time",
    "description": "Those whose period overlaps the one from here",
}
_OVERLAP: Final[dict[str, dict[str, Any]]] = {
    "from": _FROM,
    "to": {**_FROM, "description": "Those whose period overlaps the one that ends here"},
}
_OF_TIMELINES: Final[dict[str, dict[str, Any]]] = {
    "rows": {
        "type": "string",
        "enum": ["lease", "project", "rack", "host"],
        "description": "Default: lease; rack and host: operators only",
    },
    "closed": {"type": "boolean", "description": "Also closed leases"},
}
_OF_PATH: Final = {
    "/violations": _OF_VIOLATIONS,
    "/fleet/map": _OF_MAPS,
    "/leases": _OVERLAP,
    "/offers": _OVERLAP,
    "/timeline": _OF_TIMELINES,
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document; its paths are relative to the mount of the API."""
    bodies = [
        kind
        for route in routes
        for kind in (route.request, route.response, *(kind for _, _, kind in route.other))
        if kind
    ]
    kinds = list(dict.fromkeys([*bodies, wire.Errors]))
    _, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _HOLE.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moorage native API",
            "version": str(protocol.HISTORY.maximum),
            "description": "Ensembles placed jointly, held, claimed and confirmed.",
        },
        "servers": [{"url": "/v1"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
            "responses": {"Error": error_response()},
        },
    }


def _access(route: Route) -> str:
    """`Access: reader, by the rule moorage:ensembles:list.`: the default access."""
    by = f", by the rule {route.rule}" if route.rule else ""
    return f"Access: {route.access.value}{by}."


def operation(route: Route) -> dict[str, Any]:
    """The operation object of a route."""
    found: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": _access(route),
        "tags": [route.path.split("/")[1] or "versions"],
        "parameters": parameters(route),
        "security": [] if route.access is Access.ANYONE else [{"token": []}],
        "responses": {
            **answered(route),
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if route.request is not None:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": reference(route.request)}},
        }
    return found


def operation_id(route: Route) -> str:
    """The operation's id, such as `post_decisions_id_confirm`."""
    words = re.sub(r"\W+", "_", _HOLE.sub(r"\1", route.path)).strip("_")
    return f"{route.method.lower()}_{words or 'version'}"


def _query_schema(route: Route, name: str) -> dict[str, Any]:
    if name == "sort_key":
        return {"type": "string", "enum": list(SORT_KEYS[route.path.removeprefix("/")])}
    own = _OF_PATH.get(route.path, {})
    if name in own:
        return own[name]
    return QUERY.get(name, {"type": "string"})


def parameters(route: Route) -> list[dict[str, Any]]:
    """Path, query and header parameters."""
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _HOLE.findall(route.path)
    ]
    found += [
        {"name": name, "in": "query", "schema": _query_schema(route, name)}
        for name in route.parameters
    ]
    if route.mutates and route.method != "POST":
        found.append(
            {
                "name": "If-Match",
                "in": "header",
                "description": 'The generation that changes, as "7"; * for any',
                "schema": {"type": "string"},
            }
        )
    if route.expensive and route.mutates:
        found.append(
            {
                "name": protocol.PREFER,
                "in": "header",
                "description": "`wait=2`: if it is refused, answer with the conflict after so many"
                " seconds; relaxations follow under the explanation's id while it is `pending`."
                f" Then the answer has the header `{protocol.APPLIED}`",
                "schema": {"type": "string", "examples": ["wait=2"]},
            }
        )
    found.append(
        {
            "name": protocol.VERSION_HEADER,
            "in": "header",
            "schema": {"type": "string", "examples": ["ensemble 1.0", "ensemble latest"]},
        }
    )
    return found


def answered(route: Route) -> dict[str, Any]:
    """The success responses by status; 200 where nothing was created."""
    found = {str(route.status): response(route, "Done")}
    if route.status == HTTPStatus.CREATED:
        found[str(HTTPStatus.OK.value)] = response(route, "Judged, and nothing created: a dry run")
    for status, description, kind in route.other:
        found[str(status)] = with_body(description, kind)
    return found


def response(route: Route, description: str) -> dict[str, Any]:
    """One success response."""
    if route.response is None:
        return {"description": description}
    return with_body(description, route.response)


def with_body(description: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """A response with a body."""
    return {"description": description, "content": {JSON: {"schema": reference(kind)}}}


def error_response() -> dict[str, Any]:
    """The error response, with the codes of the table."""
    lines = [f"* {rule.status} `ensemble.{rule.code}`: {rule.title}" for rule in TABLE.values()]
    return {
        "description": "\n".join(["Refused or failed.", "", *lines]),
        "content": {JSON: {"schema": reference(wire.Errors)}},
    }


def reference(kind: type[msgspec.Struct]) -> dict[str, str]:
    """A reference to a struct's schema."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
