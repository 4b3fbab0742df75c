"""`/v1/ensembles/{id}/policies` and `/v1/policy-types`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.decisions import seen_by_caller
from moorage.api.native.formats import plain
from moorage.api.native.paging import Listing, of_sequence
from moorage.domain.describe import read_statement
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.policies import discover
from moorage.policies.parameters import schema
from moorage.usecases.compliance.disclosure import text_for_tenants
from moorage.usecases.ensembles.policies import (
    delete_policy,
    policy_named,
    put_policy,
    written_statement,
)
from moorage.usecases.shared.host_labels import place_label
from moorage.usecases.shared.role_access import seen_ensemble
from moorage.wire import ensembles as ensembles_wire
from moorage.wire import policies as wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.policies.contract import Policy
    from moorage.usecases.compliance.judgement import PolicyViolation
    from moorage.wire.policies import PolicyPut


def listing(call: Call) -> Reply:
    """GET: a page of the ensemble's policies."""
    ensemble = seen_ensemble(call.env.store, call.caller, call.path["id"])
    seen = seen_by_caller(call, ensemble)
    listing_ = Listing(
        call,
        f"ensembles/{ensemble.id}/policies",
        of_sequence(seen.policies, lambda one: one.name),
        lambda found: ((one.name, statement_view(call, ensemble, one)) for one in found),
    )
    return listing_.reply("policies", generation=ensemble.generation)


def show(call: Call) -> Reply:
    """GET: one policy."""
    ensemble = seen_ensemble(call.env.store, call.caller, call.path["id"])
    statement = policy_named(seen_by_caller(call, ensemble), call.path["name"])
    return Reply(
        wire.OnePolicy(statement_view(call, ensemble, statement)), generation=ensemble.generation
    )


def put(call: Call) -> Reply:
    """PUT: write a policy; reports present members that violate it."""
    body: PolicyPut = call.body
    name = call.path["name"]
    if body.policy.get("name", name) != name:
        raise InvalidDescription("the name in the body differs from the path", path="policy.name")
    id_ = call.path["id"]
    effect, impact = call.perform_judged(
        [id_],
        put_policy,
        id_,
        read_statement({**body.policy, "name": name}, "policy"),
        call.expected(body.generation),
    )
    statement = policy_named(effect.ensemble, name)
    return Reply(
        wire.OnePolicy(
            policy=statement_view(call, effect.ensemble, statement),
            violations=violations_view(call, effect.violations),
            generation=UNSET if call.dry_run else effect.ensemble.generation,
            dry_run=call.dry_run,
            breaks=impact_view(impact),
        ),
        generation=None if call.dry_run else effect.ensemble.generation,
    )


def delete(call: Call) -> Reply:
    """DELETE: delete a policy."""
    call.perform(delete_policy, call.path["id"], call.path["name"], call.expected(None))
    return Reply()


def types(call: Call) -> Reply:  # noqa: ARG001 - the signature of every handler
    """GET: every policy type."""
    return Reply(wire.PolicyTypes([_type(policy) for policy in discover().values()]))


def one_type(call: Call) -> Reply:
    """GET: one policy type."""
    name = call.path["type"]
    if name not in discover():
        raise NotFound("policy type", name)
    return Reply(wire.OnePolicyType(_type(discover()[name])))


def _type(policy: type[Policy]) -> wire.PolicyType:
    return wire.PolicyType(
        type=policy.type,
        summary=policy.summary,
        description=inspect.getdoc(policy) or policy.summary,
        schema=plain(schema(policy)),
        examples=[
            {
                "title": one.title,
                "parameters": plain(one.parameters),
                "hosts": list(one.hosts),
                "foreign": list(one.foreign),
                "good": one.good,
            }
            for one in policy.examples
        ],
    )


def statement_view(call: Call, ensemble: Ensemble, statement: PolicyStatement) -> dict[str, Any]:
    """A policy as written; names hidden from tenants become the ensemble's own labels."""
    written: dict[str, Any] = plain(written_statement(statement))
    names = written.get("domains")
    if call.caller.operator or not isinstance(names, list):
        return written
    snapshot, disclosure = call.env.store.snapshot(), call.env.limits.disclosure
    known = disclosure.names_of(snapshot.topology) | frozenset(snapshot.aggregates)
    told = [
        name if name in known else place_label(ensemble.salt, snapshot.topology, name)
        for name in names
    ]
    return {**written, "domains": sorted(told)}


def violations_view(
    call: Call, violations: Iterable[PolicyViolation]
) -> list[ensembles_wire.Violation]:
    """The violations. Texts about members name domains, so a tenant gets only the members."""
    return [
        ensembles_wire.Violation(
            policy=one.policy,
            members=[str(member) for member in one.members],
            text=one.text
            if call.caller.operator or not one.named
            else text_for_tenants(one.policy, one.members, one.text),
            amount=one.amount,
        )
        for one in violations
    ]
