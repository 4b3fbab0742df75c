"""Nova's microversions, up to the newest of Nova 34; declared are those that changed groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.http.microversion import Change, History, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_HARD: Final = ["anti-affinity", "affinity"]
_NEWEST: Final = 104
_OWNER: Final = frozenset({"project_id", "user_id"})


def _in_each(show: Callable[[dict[str, Any]], dict[str, Any]]) -> Mapping[str, Any]:
    """The lowering of every answer that shows groups."""

    def one(answer: Response) -> Response:
        return Response(answer.status, {"server_group": show(answer.body["server_group"])})

    def several(answer: Response) -> Response:
        shown = [show(group) for group in answer.body["server_groups"]]
        return Response(answer.status, {"server_groups": shown})

    return {"groups.list": several, "groups.create": one, "groups.show": one}


def _of_group(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], Any]:
    """The same schema with another one for the group in it."""

    def changed(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema
        group = change(schema["properties"]["server_group"])
        return {**schema, "properties": {"server_group": group}}

    return changed


def _without_owner(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name not in _OWNER}


def _hard_only(schema: dict[str, Any]) -> dict[str, Any]:
    policies = schema["properties"]["policies"]
    hard = {**policies, "items": {**policies["items"], "enum": _HARD}}
    return {**schema, "properties": {**schema["properties"], "policies": hard}}


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "additionalProperties": True}


def _listed_schema(schema: dict[str, Any]) -> dict[str, Any]:
    given = schema["properties"]
    policies = {"type": "array", "items": given["policy"], "minItems": 1, "maxItems": 1}
    return {
        **schema,
        "properties": {"name": given["name"], "policies": policies},
        "required": ["name", "policies"],
    }


def _listed(group: dict[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in group.items() if name not in {"policy", "rules"}}
    return {**shown, "policies": [group["policy"]], "metadata": {}}


def _single(body: Any) -> Any:  # noqa: ANN401 - a valid body
    group = body["server_group"]
    return {"server_group": {"name": group["name"], "policy": group["policies"][0]}}


_CHANGES: Final = (
    Change("2.1", "groups"),
    Change("2.13", "owners", lower=_in_each(_without_owner)),
    Change("2.15", "soft-policies", schemas={"groups.create": _of_group(_hard_only)}),
    Change(
        "2.64",
        "rules",
        schemas={"groups.create": _of_group(_listed_schema)},
        lift={"groups.create": _single},
        lower=_in_each(_listed),
    ),
    Change("2.75", "unknown-parameters-refused", schemas={"groups.list": _open}),
)


def _every() -> Iterator[Change]:
    """Also versions that changed other resources of Nova."""
    own = {change.since: change for change in _CHANGES}
    for minor in range(1, _NEWEST + 1):
        since = f"2.{minor}"
        yield own.get(since) or Change(since, f"other-{since}")


HISTORY: Final = History(_every())
