"""`/v1/ensembles/{id}/policies` and `/v1/policy-types`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native import envelopes, views
from moorage.api.native.call import Call, Reply
from moorage.domain.describe import read_statement
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.policies import discover
from moorage.policies.parameters import schema
from moorage.usecases.access import own_ensemble
from moorage.usecases.merge import written_statement
from moorage.usecases.policies import delete_policy, policy_named, put_policy

if TYPE_CHECKING:
    from moorage.api.native.requests import PolicyPut
    from moorage.policies.contract import Policy


def listing(call: Call) -> Reply:
    """GET: the ensemble's policies."""
    ensemble = own_ensemble(call.parts.store, call.caller, call.path["id"])
    found = [views.plain(written_statement(one)) for one in ensemble.policies]
    return Reply(envelopes.Policies(found), generation=ensemble.generation)


def show(call: Call) -> Reply:
    """GET: one policy."""
    ensemble = own_ensemble(call.parts.store, call.caller, call.path["id"])
    statement = policy_named(ensemble, call.path["name"])
    return Reply(
        envelopes.OnePolicy(views.plain(written_statement(statement))),
        generation=ensemble.generation,
    )


def put(call: Call) -> Reply:
    """PUT: write a policy, and report the present members that break it."""
    body: PolicyPut = call.body
    name = call.path["name"]
    if body.policy.get("name", name) != name:
        raise InvalidDescription("the name in the body differs from the path", path="policy.name")
    effect = put_policy(
        call.parts,
        call.caller,
        call.path["id"],
        read_statement({**body.policy, "name": name}, "policy"),
        call.expected(body.generation),
        dry_run=call.dry_run,
    )
    statement = policy_named(effect.ensemble, name)
    return Reply(
        envelopes.OnePolicy(
            policy=views.plain(written_statement(statement)),
            violations=views.violations_view(call, effect.violations),
            generation=UNSET if effect.dry_run else effect.ensemble.generation,
            dry_run=effect.dry_run,
        ),
        generation=None if effect.dry_run else effect.ensemble.generation,
    )


def delete(call: Call) -> Reply:
    """DELETE: drop a policy."""
    delete_policy(
        call.parts,
        call.caller,
        call.path["id"],
        call.path["name"],
        call.expected(None),
        dry_run=call.dry_run,
    )
    return Reply()


def types(call: Call) -> Reply:  # noqa: ARG001 - the signature of every handler
    """GET: every policy type."""
    return Reply(envelopes.PolicyTypes([_type(policy) for policy in discover().values()]))


def one_type(call: Call) -> Reply:
    """GET: one policy type."""
    name = call.path["type"]
    if name not in discover():
        raise NotFound("policy type", name)
    return Reply(envelopes.OnePolicyType(_type(discover()[name])))


def _type(policy: type[Policy]) -> envelopes.PolicyType:
    return envelopes.PolicyType(
        type=policy.type,
        summary=policy.summary,
        description=inspect.getdoc(policy) or policy.summary,
        schema=views.plain(schema(policy)),
        examples=[
            {
                "title": one.title,
                "parameters": views.plain(one.parameters),
                "hosts": list(one.hosts),
                "foreign": list(one.foreign),
                "good": one.good,
            }
            for one in policy.examples
        ],
    )
