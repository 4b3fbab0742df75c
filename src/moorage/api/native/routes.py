"""The route table: every verb of the native API on one screen."""

# ruff: noqa: E501 - one route, one line: this is read as a table

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import answers_operator as told
from moorage.api.native import (
    claims,
    decisions,
    ensembles,
    envelopes,
    explanations,
    flavors,
    fleet,
    hot,
    members,
    policies,
    requests,
    versions,
)
from moorage.api.native import requests_operator as asked
from moorage.api.native.access import Access
from moorage.api.native.clock import Clock, SettableClock
from moorage.api.native.route import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

ANYONE, READER, MEMBER, OPERATOR = Access.ANYONE, Access.READER, Access.MEMBER, Access.OPERATOR
PAGE = ("limit", "marker")

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/", ANYONE, versions.show, "The version document", response=envelopes.Versions),
    Route("GET", "/openapi.json", ANYONE, versions.describe, "This API as an OpenAPI 3.1 document"),
    Route("GET", "/ensembles", READER, ensembles.listing, "List ensembles", response=envelopes.Ensembles, query=(*PAGE, "name", "project_id", "all_projects")),
    Route("POST", "/ensembles", MEMBER, ensembles.create, "Create an ensemble, and with decide place and hold it", request=requests.EnsembleCreate, response=envelopes.OneEnsemble, status=201, mutates=True),
    Route("GET", "/ensembles/{id}", READER, ensembles.show, "Show an ensemble with its current decision", response=envelopes.OneEnsemble, query=("compliance",)),
    Route("PATCH", "/ensembles/{id}", MEMBER, ensembles.change, "Change counts, policies and metadata", request=requests.EnsembleChange, response=envelopes.OneEnsemble, mutates=True),
    Route("DELETE", "/ensembles/{id}", MEMBER, ensembles.delete, "Forget an ensemble; its servers stay", status=204, mutates=True),
    Route("GET", "/ensembles/{id}/survivability", READER, ensembles.survives, "What is left when any one domain is lost", response=envelopes.Survivability),
    Route("GET", "/ensembles/{id}/members", READER, members.listing, "List members and where they stand", response=envelopes.Members),
    Route("POST", "/ensembles/{id}/members", MEMBER, members.add, "Add members by description, or a running server", request=requests.MemberCreate, response=envelopes.Added, status=201, mutates=True),
    Route("GET", "/ensembles/{id}/members/{name:path}", READER, members.show, "Show a member", response=envelopes.OneMember),
    Route("DELETE", "/ensembles/{id}/members/{name:path}", MEMBER, members.remove, "Take a member out", status=204, query=("keep_resources",), mutates=True),
    Route("GET", "/ensembles/{id}/policies", READER, policies.listing, "List the policies of an ensemble", response=envelopes.Policies),
    Route("GET", "/ensembles/{id}/policies/{name}", READER, policies.show, "Show a policy", response=envelopes.OnePolicy),
    Route("PUT", "/ensembles/{id}/policies/{name}", MEMBER, policies.put, "Write a policy and see who breaks it", request=requests.PolicyPut, response=envelopes.OnePolicy, mutates=True),
    Route("DELETE", "/ensembles/{id}/policies/{name}", MEMBER, policies.delete, "Drop a policy", status=204, mutates=True),
    Route("GET", "/policy-types", READER, policies.types, "List policy types with their parameters", response=envelopes.PolicyTypes),
    Route("GET", "/policy-types/{type}", READER, policies.one_type, "Show a policy type", response=envelopes.OnePolicyType),
    Route("GET", "/decisions", READER, decisions.listing, "List decisions, newest first", response=envelopes.Decisions, query=(*PAGE, "ensemble_id", "all_projects")),
    Route("POST", "/decisions", MEMBER, decisions.create, "Place an ensemble jointly and hold the places", request=requests.DecisionCreate, response=envelopes.OneDecision, status=201, mutates=True),
    Route("GET", "/decisions/{id}", READER, decisions.show, "Show a decision", response=envelopes.OneDecision),
    Route("PATCH", "/decisions/{id}", MEMBER, decisions.renew, "Hold longer", request=requests.DecisionPatch, response=envelopes.OneDecision, mutates=True),
    Route("DELETE", "/decisions/{id}", MEMBER, decisions.release, "Give unclaimed places back", status=204, mutates=True),
    Route("POST", "/decisions/{id}/confirm", MEMBER, decisions.confirm, "Keep what is claimed, free the rest", response=envelopes.Confirmed, mutates=True),
    Route("GET", "/decisions/{id}/explanation", READER, explanations.of_decision, "Why there was no such decision", response=envelopes.OneExplanation, query=("instance",)),
    Route("GET", "/decisions/{id}/claims", READER, claims.listing, "List the claims of a decision", response=envelopes.Claims),
    Route("POST", "/decisions/{id}/claims", MEMBER, claims.create, "Take the place of a member for a server", request=requests.ClaimCreate, response=envelopes.OneClaim, status=201, mutates=True),
    Route("GET", "/claims/{id}", READER, claims.show, "Show a claim", response=envelopes.OneClaim),
    Route("PATCH", "/claims/{id}", MEMBER, claims.change, "Tell what became of the server", request=requests.ClaimPatch, response=envelopes.OneClaim, mutates=True),
    Route("POST", "/explanations", MEMBER, explanations.create, "Would it fit, and if not, why not", request=requests.ExplanationCreate, response=envelopes.Explained),
    Route("GET", "/explanations/{id}", READER, explanations.show, "Show an explanation", response=envelopes.OneExplanation, query=("instance",)),
    Route("POST", "/hot", MEMBER, hot.place, "Place the servers of a Heat template", request=asked.HotCreate, response=told.Hot, status=201, mutates=True),
    Route("GET", "/flavors", READER, flavors.listing, "List flavors", response=told.Flavors),
    Route("POST", "/flavors", OPERATOR, flavors.create, "Write a flavor", request=asked.FlavorCreate, response=told.OneFlavor, status=201, mutates=True),
    Route("POST", "/flavors/load", OPERATOR, flavors.load, "Load `openstack flavor list --long -f json`", request=asked.FlavorLoad, response=told.Flavors, mutates=True),
    Route("GET", "/flavors/{name}", READER, flavors.show, "Show a flavor by id or name", response=told.OneFlavor),
    Route("DELETE", "/flavors/{name}", OPERATOR, flavors.delete, "Forget a flavor", status=204, mutates=True),
    Route("GET", "/topology/domains", OPERATOR, fleet.show_topology, "Show all trees", response=told.OneTopology),
    Route("PUT", "/topology/domains", OPERATOR, fleet.put, "Replace all trees", request=asked.TopologyPut, response=told.OneTopology, mutates=True),
    Route("GET", "/fleet", OPERATOR, fleet.show, "Hosts with their domains, capacity and use", response=told.OneFleet),
    Route("POST", "/fleet", OPERATOR, fleet.load, "Load a part of a fleet", request=asked.FleetLoad, response=told.FleetLoaded),
    Route("GET", "/bookings", OPERATOR, fleet.bookings, "List live bookings", response=told.Bookings, query=(*PAGE, "provider", "consumer", "decision")),
)
# fmt: on


def simulation(clock: SettableClock) -> Sequence[Route]:
    """The routes of a simulation's clock; only a simulation has them."""
    own = Clock(clock)
    path = "/simulation/clock"
    return (
        Route("GET", path, READER, own.show, "The simulated instant", response=told.OneClock),
        Route(
            "PUT",
            path,
            OPERATOR,
            own.put,
            "Move time forward",
            request=asked.ClockPut,
            response=told.OneClock,
        ),
    )
