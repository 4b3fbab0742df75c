"""Handlers of server groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.server_groups import ANTI_AFFINITY, GroupPolicy
from moorage.http.microversion import Response
from moorage.usecases.ensembles.server_groups import (
    create_server_group,
    delete_server_group,
    list_server_groups,
    show_server_group,
)

if TYPE_CHECKING:
    from moorage.api.compute.call import Call
    from moorage.usecases.ensembles.server_groups import ServerGroup

_RULE: Final = "max_server_per_host"
_MOST: Final = 2**31 - 1
"""The greatest limit of servers on a host."""
_DIGITS: Final = 9
"""Of a number that is longer nothing more matters."""


def listing(call: Call) -> Response:
    """GET: the project's groups; an operator's of all projects with `all_projects`."""
    most = call.env.limits.page
    groups = list_server_groups(
        call.env,
        call.caller,
        all_projects="all_projects" in call.query,
        offset=_number(call.query.get("offset", "0")),
        limit=min(_number(call.query.get("limit", "0")) or most, most),
    )
    return Response(200, {"server_groups": [_shown(one) for one in groups]})


def create(call: Call) -> Response:
    """POST: a new group, empty."""
    wanted = call.body["server_group"]
    word, rules = wanted["policy"], wanted.get("rules", {})
    if rules and word != ANTI_AFFINITY:
        raise InvalidDescription(f"the policy {word} has no rules", path="rules")
    limit = int(rules[_RULE]) if rules else None
    if limit is not None and limit > _MOST:
        raise InvalidDescription(f"{_RULE} is at most {_MOST}", path="rules")
    policy = GroupPolicy(word, limit)
    made = create_server_group(call.env, call.caller, wanted["name"], policy)
    return Response(200, {"server_group": _shown(made)})


def show(call: Call) -> Response:
    """GET: one group."""
    found = show_server_group(call.env, call.caller, call.path["id"].lower())
    return Response(200, {"server_group": _shown(found)})


def delete(call: Call) -> Response:
    """DELETE: the group, without its servers."""
    delete_server_group(call.env, call.caller, call.path["id"].lower())
    return Response(204)


def _shown(group: ServerGroup) -> dict[str, Any]:
    limit = group.policy.max_server_per_host
    return {
        "id": group.ensemble.id,
        "name": group.ensemble.name,
        "policy": group.policy.word,
        "rules": {} if limit is None else {_RULE: limit},
        "members": list(group.servers),
        "project_id": group.ensemble.project_id,
        "user_id": group.ensemble.user_id,
    }


def _number(text: str) -> int:
    return int(text.lstrip("0")[:_DIGITS] or "0")
