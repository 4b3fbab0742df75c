"""The route table: every verb of the native API on one screen."""

# ruff: noqa: E501 - one route, one line: this is read as a table

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.api.native import answers_capacity as counted
from moorage.api.native import answers_events as heard
from moorage.api.native import answers_leases as leased
from moorage.api.native import answers_offers as proposed
from moorage.api.native import answers_operator as told
from moorage.api.native import answers_quotas as quoted
from moorage.api.native import answers_series as recurring
from moorage.api.native import answers_templates as made
from moorage.api.native import answers_waitlist as listed
from moorage.api.native import (
    capacity,
    claims,
    decisions,
    ensembles,
    envelopes,
    events,
    explanations,
    flavors,
    fleet,
    hot,
    leases,
    members,
    offers,
    planned,
    policies,
    quotas,
    requests,
    requests_capacity,
    requests_events,
    requests_leases,
    requests_offers,
    requests_quotas,
    requests_series,
    requests_templates,
    series,
    subscriptions,
    templates,
    versions,
    waitlist,
)
from moorage.api.native import requests_operator as asked
from moorage.api.native.access import Access
from moorage.api.native.clock import Clock, SettableClock
from moorage.api.native.reading import PRIORITY
from moorage.api.native.route import Route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANYONE, READER, MEMBER, OPERATOR = Access.ANYONE, Access.READER, Access.MEMBER, Access.OPERATOR
PAGE = ("limit", "marker")
SCOPE = ("from", "to", "zone", "flavor", "resources", "required")

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/", ANYONE, "", versions.show, "The version document", response=envelopes.Versions),
    Route("GET", "/openapi.json", ANYONE, "", versions.describe, "This API as an OpenAPI 3.1 document"),
    Route("GET", "/ensembles", READER, "moorage:ensembles:list", ensembles.listing, "List ensembles", response=envelopes.Ensembles, query=(*PAGE, "name", "project_id", "all_projects")),
    Route("POST", "/ensembles", MEMBER, "moorage:ensembles:create", ensembles.create, "Create an ensemble, and with decide place and hold it", request=requests.EnsembleCreate, response=envelopes.OneEnsemble, status=201, mutates=True),
    Route("GET", "/ensembles/{id}", READER, "moorage:ensembles:show", ensembles.show, "Show an ensemble with its current decision", response=envelopes.OneEnsemble, query=("compliance",)),
    Route("PATCH", "/ensembles/{id}", MEMBER, "moorage:ensembles:update", ensembles.change, "Change counts, policies and metadata", request=requests.EnsembleChange, response=envelopes.OneEnsemble, mutates=True),
    Route("DELETE", "/ensembles/{id}", MEMBER, "moorage:ensembles:delete", ensembles.delete, "Forget an ensemble; its servers stay", status=204, mutates=True),
    Route("GET", "/ensembles/{id}/survivability", READER, "moorage:ensembles:survivability", ensembles.survives, "What is left when any one domain is lost", response=envelopes.Survivability),
    Route("GET", "/ensembles/{id}/members", READER, "moorage:members:list", members.listing, "List members and where they stand", response=envelopes.Members),
    Route("POST", "/ensembles/{id}/members", MEMBER, "moorage:members:create", members.add, "Add members by description, or a running server", request=requests.MemberCreate, response=envelopes.Added, status=201, mutates=True),
    Route("GET", "/ensembles/{id}/members/{name:path}", READER, "moorage:members:show", members.show, "Show a member", response=envelopes.OneMember),
    Route("DELETE", "/ensembles/{id}/members/{name:path}", MEMBER, "moorage:members:delete", members.remove, "Take a member out", status=204, query=("keep_resources",), mutates=True),
    Route("GET", "/ensembles/{id}/policies", READER, "moorage:policies:list", policies.listing, "List the policies of an ensemble", response=envelopes.Policies),
    Route("GET", "/ensembles/{id}/policies/{name}", READER, "moorage:policies:show", policies.show, "Show a policy", response=envelopes.OnePolicy),
    Route("PUT", "/ensembles/{id}/policies/{name}", MEMBER, "moorage:policies:update", policies.put, "Write a policy and see who breaks it", request=requests.PolicyPut, response=envelopes.OnePolicy, mutates=True),
    Route("DELETE", "/ensembles/{id}/policies/{name}", MEMBER, "moorage:policies:delete", policies.delete, "Drop a policy", status=204, mutates=True),
    Route("GET", "/policy-types", READER, "moorage:policy_types:list", policies.types, "List policy types with their parameters", response=envelopes.PolicyTypes),
    Route("GET", "/policy-types/{type}", READER, "moorage:policy_types:show", policies.one_type, "Show a policy type", response=envelopes.OnePolicyType),
    Route("GET", "/decisions", READER, "moorage:decisions:list", decisions.listing, "List decisions, newest first", response=envelopes.Decisions, query=(*PAGE, "ensemble_id", "all_projects")),
    Route("POST", "/decisions", MEMBER, "moorage:decisions:create", decisions.create, "Place an ensemble jointly and hold the places", request=requests.DecisionCreate, response=envelopes.OneDecision, status=201, mutates=True),
    Route("GET", "/decisions/{id}", READER, "moorage:decisions:show", decisions.show, "Show a decision", response=envelopes.OneDecision),
    Route("PATCH", "/decisions/{id}", MEMBER, "moorage:decisions:update", decisions.renew, "Hold longer", request=requests.DecisionPatch, response=envelopes.OneDecision, mutates=True),
    Route("DELETE", "/decisions/{id}", MEMBER, "moorage:decisions:release", decisions.release, "Give unclaimed places back", status=204, mutates=True),
    Route("POST", "/decisions/{id}/confirm", MEMBER, "moorage:decisions:confirm", decisions.confirm, "Keep what is claimed, free the rest", response=envelopes.Confirmed, mutates=True),
    Route("GET", "/decisions/{id}/explanation", READER, "moorage:decisions:explanation", explanations.of_decision, "Why there was no such decision", response=envelopes.OneExplanation, query=("instance",)),
    Route("GET", "/decisions/{id}/claims", READER, "moorage:claims:list", claims.listing, "List the claims of a decision", response=envelopes.Claims),
    Route("POST", "/decisions/{id}/claims", MEMBER, "moorage:claims:create", claims.create, "Take the place of a member for a server", request=requests.ClaimCreate, response=envelopes.OneClaim, status=201, mutates=True),
    Route("GET", "/claims/{id}", READER, "moorage:claims:show", claims.show, "Show a claim", response=envelopes.OneClaim),
    Route("PATCH", "/claims/{id}", MEMBER, "moorage:claims:update", claims.change, "Tell what became of the server", request=requests.ClaimPatch, response=envelopes.OneClaim, mutates=True),
    Route("GET", "/leases", READER, "moorage:leases:list", leases.listing, "List leases, oldest first", response=leased.Leases, query=(*PAGE, "name", "state", "series", "project_id", "all_projects")),
    Route("POST", "/leases", MEMBER, "moorage:leases:create", leases.create, "Lease places for a later period, with a proof", request=requests_leases.LeaseCreate, response=leased.OneLease, status=201, mutates=True, other=((202, "Not now: it waits", listed.OneWaitlistEntry),)),
    Route("GET", "/leases/{id}", READER, "moorage:leases:show", leases.show, "Show a lease", response=leased.OneLease),
    Route("PATCH", "/leases/{id}", MEMBER, "moorage:leases:update", leases.change, "Extend, shrink, grow, move or rename a lease", request=requests_leases.LeaseChange, response=leased.OneLease, mutates=True),
    Route("DELETE", "/leases/{id}", MEMBER, "moorage:leases:cancel", leases.cancel, "Cancel a lease; one that has started ends now", status=204, mutates=True),
    Route("GET", "/leases/{id}/events", READER, "moorage:leases:events", leases.events, "List what happens because of a lease", response=leased.LeaseEvents, query=PAGE),
    Route("GET", "/series", READER, "moorage:series:list", series.listing, "List series of leases, oldest first", response=recurring.SeveralSeries, query=(*PAGE, "name", "all_projects")),
    Route("POST", "/series", MEMBER, "moorage:series:create", series.create, "Lease places again and again: every occurrence is granted, or none", request=requests_series.SeriesCreate, response=recurring.OneSeries, status=201, mutates=True),
    Route("GET", "/series/{id}", READER, "moorage:series:show", series.show, "Show a series with its leases", response=recurring.OneSeries),
    Route("PATCH", "/series/{id}", MEMBER, "moorage:series:update", series.rename, "Call a series and its leases otherwise", request=requests_series.SeriesChange, response=recurring.OneSeries, mutates=True),
    Route("DELETE", "/series/{id}", MEMBER, "moorage:series:cancel", series.cancel, "Cancel what of a series has not started: all, from a number on, or one", response=recurring.Cancelled, query=("from", "only"), mutates=True),
    Route("POST", "/series/{id}/extend", MEMBER, "moorage:series:extend", series.extend, "Add occurrences at the end: all of them, or none", request=requests_series.SeriesExtend, response=recurring.OneSeries, mutates=True),
    Route("GET", "/waitlist", READER, "moorage:waitlist:list", waitlist.listing, "List leases that wait or have waited, oldest first", response=listed.WaitlistEntries, query=(*PAGE, "status", "all_projects")),
    Route("GET", "/waitlist/{id}", READER, "moorage:waitlist:show", waitlist.show, "Show a lease that waits: its place in the order, why, and an estimate", response=listed.OneWaitlistEntry),
    Route("DELETE", "/waitlist/{id}", MEMBER, "moorage:waitlist:cancel", waitlist.cancel, "Wait no longer", status=204, mutates=True),
    Route("GET", "/quotas", READER, "moorage:quotas:list", quotas.listing, "What the project may lease and hold, and what it has", response=quoted.Quotas, query=("all_projects",)),
    Route("GET", "/quotas/{project_id}", READER, "moorage:quotas:show", quotas.show, "Show a project's quota and what is used of it", response=quoted.OneQuota),
    Route("PATCH", "/quotas/{project_id}", OPERATOR, "moorage:quotas:update", quotas.change, "Say what a project may lease and hold", request=requests_quotas.QuotaChange, response=quoted.OneQuota, mutates=True),
    Route("DELETE", "/quotas/{project_id}", OPERATOR, "moorage:quotas:delete", quotas.delete, "Let the defaults hold for a project again", status=204, mutates=True),
    Route("GET", "/offers", READER, "moorage:offers:list", offers.listing, "List offers that nobody has accepted, oldest first", response=proposed.Offers, query=(*PAGE, "over", "all_projects")),
    Route("POST", "/offers", MEMBER, "moorage:offers:create", offers.create, "Find windows in a range of starts and hold their places", request=requests_offers.OfferCreate, response=proposed.Offers, status=201, mutates=True),
    Route("GET", "/offers/{id}", READER, "moorage:offers:show", offers.show, "Show an offer", response=proposed.OneOffer),
    Route("DELETE", "/offers/{id}", MEMBER, "moorage:offers:withdraw", offers.withdraw, "Give an offer up", status=204, mutates=True),
    Route("POST", "/offers/{id}/accept", MEMBER, "moorage:offers:accept", offers.accept, "Make a lease of an offer; its siblings are given up", request=requests_offers.OfferAccept, response=leased.OneLease, status=201, mutates=True),
    Route("GET", "/events", READER, "moorage:events:list", events.listing, "Read events by cursor, waiting for more", response=heard.Events, query=("limit", "after", "type", "subject", "wait", "project_id", "all_projects")),
    Route("GET", "/subscriptions", READER, "moorage:subscriptions:list", subscriptions.listing, "List subscriptions, oldest first", response=heard.Subscriptions, query=(*PAGE, "all_projects")),
    Route("POST", "/subscriptions", MEMBER, "moorage:subscriptions:create", subscriptions.create, "Have events delivered to a URL", request=requests_events.SubscriptionCreate, response=heard.OneSubscription, status=201, mutates=True),
    Route("GET", "/subscriptions/{id}", READER, "moorage:subscriptions:show", subscriptions.show, "Show a subscription and how far it has come", response=heard.OneSubscription),
    Route("DELETE", "/subscriptions/{id}", MEMBER, "moorage:subscriptions:delete", subscriptions.delete, "Forget a subscription with its dead letters", status=204, mutates=True),
    Route("GET", "/subscriptions/{id}/dead-letters", READER, "moorage:subscriptions:dead_letters", subscriptions.letters, "List events that were given up", response=heard.DeadLetters, query=PAGE),
    Route("POST", "/subscriptions/{id}/resend", MEMBER, "moorage:subscriptions:resend", subscriptions.send_again, "Send dead letters once more", request=requests_events.Resend, response=heard.Resent, mutates=True),
    Route("POST", "/explanations", MEMBER, "moorage:explanations:create", explanations.create, "Would it fit, and if not, why not", request=requests.ExplanationCreate, response=envelopes.Explained),
    Route("GET", "/explanations/{id}", READER, "moorage:explanations:show", explanations.show, "Show an explanation", response=envelopes.OneExplanation, query=("instance",)),
    Route("POST", "/hot", MEMBER, "moorage:hot:place", hot.place, "Place the servers of a Heat template", request=asked.HotCreate, response=told.Hot, status=201, mutates=True),
    Route("GET", "/templates", READER, "moorage:templates:list", templates.listing, "List templates, each in its newest version", response=made.Templates, query=(*PAGE, "name", "all_projects")),
    Route("POST", "/templates", MEMBER, "moorage:templates:create", templates.create, "Keep a template", request=requests_templates.TemplateCreate, response=made.OneTemplate, status=201, mutates=True),
    Route("GET", "/templates/{id}", READER, "moorage:templates:show", templates.show, "Show a template by id or name", response=made.OneTemplate, query=("version",)),
    Route("DELETE", "/templates/{id}", MEMBER, "moorage:templates:delete", templates.delete, "Forget every version of a template", status=204, mutates=True),
    Route("POST", "/templates/{id}/versions", MEMBER, "moorage:templates:revise", templates.revise, "Keep a template's next version", request=requests_templates.VersionCreate, response=made.OneTemplate, status=201, mutates=True),
    Route("POST", "/templates/{id}/instances", MEMBER, "moorage:templates:instantiate", templates.create_instance, "Make an ensemble of a template, and with decide place and hold it", request=requests_templates.InstanceCreate, response=envelopes.OneEnsemble, status=201, mutates=True),
    Route("GET", "/flavors", READER, "moorage:flavors:list", flavors.listing, "List flavors", response=told.Flavors),
    Route("POST", "/flavors", OPERATOR, "moorage:flavors:create", flavors.create, "Write a flavor", request=asked.FlavorCreate, response=told.OneFlavor, status=201, mutates=True),
    Route("POST", "/flavors/load", OPERATOR, "moorage:flavors:load", flavors.load, "Load `openstack flavor list --long -f json`", request=asked.FlavorLoad, response=told.Flavors, mutates=True),
    Route("GET", "/flavors/{name}", READER, "moorage:flavors:show", flavors.show, "Show a flavor by id or name", response=told.OneFlavor),
    Route("DELETE", "/flavors/{name}", OPERATOR, "moorage:flavors:delete", flavors.delete, "Forget a flavor", status=204, mutates=True),
    Route("GET", "/capacity", READER, "moorage:capacity:show", capacity.show, "Capacity over time, by resource class, and how many of a size fit", response=counted.OneCapacity, query=(*SCOPE, "step", "by")),
    Route("POST", "/capacity/fit", READER, "moorage:capacity:fit", capacity.fit, "How many more fit, and what limits it", request=requests_capacity.FitCreate, response=counted.OneFit),
    Route("GET", "/capacity/windows", READER, "moorage:capacity:windows", capacity.windows, "When so many fit for so long", response=counted.Windows, query=(*SCOPE, "count", "duration")),
    Route("GET", "/capacity/planned", OPERATOR, "moorage:capacity_windows:list", planned.listing, "List planned changes of capacity", response=counted.Planned, query=PAGE),
    Route("POST", "/capacity/planned", OPERATOR, "moorage:capacity_windows:create", planned.create, "Plan that hosts are away; refused where it would break a lease", request=requests_capacity.PlannedCreate, response=counted.OnePlanned, status=201, mutates=True),
    Route("GET", "/capacity/planned/{id}", OPERATOR, "moorage:capacity_windows:show", planned.show, "Show a planned change, and who is on its hosts", response=counted.OnePlanned),
    Route("DELETE", "/capacity/planned/{id}", OPERATOR, "moorage:capacity_windows:delete", planned.delete, "Think better of it: the hosts are there", status=204, mutates=True),
    Route("GET", "/topology/domains", OPERATOR, "moorage:topology:show", fleet.show_topology, "Show all trees", response=told.OneTopology),
    Route("PUT", "/topology/domains", OPERATOR, "moorage:topology:update", fleet.put, "Replace all trees", request=asked.TopologyPut, response=told.OneTopology, mutates=True),
    Route("GET", "/fleet", OPERATOR, "moorage:fleet:show", fleet.show, "Hosts with their domains, capacity and use", response=told.OneFleet),
    Route("POST", "/fleet", OPERATOR, "moorage:fleet:load", fleet.load, "Load a part of a fleet", request=asked.FleetLoad, response=told.FleetLoaded),
    Route("GET", "/bookings", OPERATOR, "moorage:bookings:list", fleet.bookings, "List live bookings", response=told.Bookings, query=(*PAGE, "provider", "consumer", "decision")),
)
# fmt: on

EXACT: Final = "moorage:capacity:exact"
"""Who meets it sees capacity in exact numbers and totals; others rough counts, free or busy."""
FURTHER: Final[Mapping[str, Access]] = MappingProxyType({EXACT: OPERATOR, PRIORITY: OPERATOR})
"""Rules of no route: what somebody sees of an answer, or may ask for."""

CLOCK: Final[Mapping[str, Access]] = MappingProxyType(
    {"moorage:clock:show": READER, "moorage:clock:update": OPERATOR}
)
"""The rules of a simulation's clock."""


def simulation(clock: SettableClock) -> Sequence[Route]:
    """The routes of a simulation's clock; only a simulation has them."""
    own = Clock(clock)
    path = "/simulation/clock"
    return (
        Route(
            "GET",
            path,
            CLOCK["moorage:clock:show"],
            "moorage:clock:show",
            own.show,
            "The simulated instant",
            response=told.OneClock,
        ),
        Route(
            "PUT",
            path,
            CLOCK["moorage:clock:update"],
            "moorage:clock:update",
            own.put,
            "Move time forward",
            request=asked.ClockPut,
            response=told.OneClock,
        ),
    )
