"""The route table: every verb of the native API on one screen."""

# ruff: noqa: E501 - one route, one line: this is read as a table

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.api.native import (
    capacity,
    claims,
    compliance,
    decision_records,
    decisions,
    ensembles,
    events,
    explanations,
    flavors,
    fleet,
    fleet_map,
    growth,
    hosts,
    hot,
    leases,
    members,
    offers,
    plans,
    policies,
    quotas,
    request_mix,
    series,
    server_providers,
    shares,
    simulations,
    stacks,
    templates,
    timeline,
    versions,
    waitlist,
)
from moorage.api.native.access import Access
from moorage.api.native.clock import Clock, SettableClock
from moorage.api.native.reading import PRIORITY
from moorage.api.native.route import Route
from moorage.wire import capacity as capacity_wire
from moorage.wire import claims as claims_wire
from moorage.wire import clock as clock_wire
from moorage.wire import compliance as compliance_wire
from moorage.wire import decision_records as decision_records_wire
from moorage.wire import decisions as decisions_wire
from moorage.wire import ensembles as ensembles_wire
from moorage.wire import events as events_wire
from moorage.wire import explanations as explanations_wire
from moorage.wire import flavors as flavors_wire
from moorage.wire import fleet as fleet_wire
from moorage.wire import fleet_map as fleet_map_wire
from moorage.wire import growth as growth_wire
from moorage.wire import hosts as hosts_wire
from moorage.wire import hot as hot_wire
from moorage.wire import leases as leases_wire
from moorage.wire import members as members_wire
from moorage.wire import offers as offers_wire
from moorage.wire import plans as plans_wire
from moorage.wire import policies as policies_wire
from moorage.wire import quotas as quotas_wire
from moorage.wire import request_mix as request_mix_wire
from moorage.wire import series as series_wire
from moorage.wire import server_providers as server_providers_wire
from moorage.wire import shares as shares_wire
from moorage.wire import simulations as simulations_wire
from moorage.wire import stacks as stacks_wire
from moorage.wire import templates as templates_wire
from moorage.wire import timeline as timeline_wire
from moorage.wire import versions as versions_wire
from moorage.wire import waitlist as waitlist_wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANYONE, READER, MEMBER, OPERATOR = Access.ANYONE, Access.READER, Access.MEMBER, Access.OPERATOR
PAGE = ("limit", "marker")
SORTED = (*PAGE, "sort_key", "sort_dir")
"""Of the listings in `paging.SORT_KEYS`."""
BROKEN = ((200, "Done: violations begin by it", compliance_wire.Broken),)
BETWEEN = ("from", "to")
SCOPE = (*BETWEEN, "zone", "flavor", "resources", "required")

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/", ANYONE, "", versions.show, "The version document", response=versions_wire.Versions),
    Route("GET", "/openapi.json", ANYONE, "", versions.describe, "This API as an OpenAPI 3.1 document"),
    Route("GET", "/ensembles", READER, "moorage:ensembles:list", ensembles.listing, "List ensembles", response=ensembles_wire.Ensembles, query=(*SORTED, "name", "project_id", "all_projects")),
    Route("POST", "/ensembles", MEMBER, "moorage:ensembles:create", ensembles.create, "Create an ensemble, and with decide place and hold it", request=ensembles_wire.EnsembleCreate, response=ensembles_wire.OneEnsemble, status=201, mutates=True, expensive=True),
    Route("GET", "/ensembles/{id}", READER, "moorage:ensembles:show", ensembles.show, "Show an ensemble with its current decision", response=ensembles_wire.OneEnsemble, query=("compliance",)),
    Route("PATCH", "/ensembles/{id}", MEMBER, "moorage:ensembles:update", ensembles.change, "Change counts, policies and metadata", request=ensembles_wire.EnsembleChange, response=ensembles_wire.OneEnsemble, mutates=True, expensive=True),
    Route("DELETE", "/ensembles/{id}", MEMBER, "moorage:ensembles:delete", ensembles.delete, "Delete an ensemble, with cascade=leases its lease, too; its servers stay", status=204, other=BROKEN, query=("cascade",), mutates=True),
    Route("POST", "/ensembles/{id}/extend", MEMBER, "moorage:ensembles:extend", growth.extend, "Decide more members beside those that there are: all of them, or as many as fit", request=growth_wire.EnsembleExtend, response=growth_wire.OneExtended, mutates=True, expensive=True),
    Route("PUT", "/ensembles/{id}/headroom", MEMBER, "moorage:ensembles:headroom", growth.headroom, "Hold places for more members of a role, until another number is set", request=growth_wire.HeadroomPut, response=growth_wire.OneHeadroom, mutates=True, expensive=True),
    Route("POST", "/ensembles/{id}/shrink", MEMBER, "moorage:ensembles:shrink", growth.shrink, "Take members out so that the policies keep holding", request=growth_wire.EnsembleShrink, response=growth_wire.OneShrunk, mutates=True, expensive=True),
    Route("GET", "/ensembles/{id}/survivability", READER, "moorage:ensembles:survivability", ensembles.survives, "What is left when any one domain is lost", response=ensembles_wire.Survivability, expensive=True),
    Route("GET", "/ensembles/{id}/compliance", READER, "moorage:ensembles:compliance", compliance.show, "Judge an ensemble now: which policies are broken, and who is out of service", response=compliance_wire.OneCompliance, query=("history", *PAGE)),
    Route("GET", "/violations", READER, "moorage:violations:list", compliance.listing, "List broken policies and members out of service, newest first", response=compliance_wire.Violations, query=(*PAGE, "ensemble", "host", "type", "required", "state", "since", "project_id", "all_projects")),
    Route("GET", "/ensembles/{id}/members", READER, "moorage:members:list", members.listing, "List members and where they stand", response=members_wire.Members, query=PAGE),
    Route("POST", "/ensembles/{id}/members", MEMBER, "moorage:members:create", members.add, "Add members by description, or a running server", request=members_wire.MemberCreate, response=members_wire.Added, status=201, mutates=True, expensive=True),
    Route("GET", "/ensembles/{id}/members/{name:path}", READER, "moorage:members:show", members.show, "Show a member", response=members_wire.OneMember),
    Route("DELETE", "/ensembles/{id}/members/{name:path}", MEMBER, "moorage:members:delete", members.remove, "Take a member out, and see which policies break by it", response=members_wire.OneRemoved, query=("keep_resources",), mutates=True),
    Route("GET", "/ensembles/{id}/policies", READER, "moorage:policies:list", policies.listing, "List the policies of an ensemble", response=policies_wire.Policies, query=PAGE),
    Route("GET", "/ensembles/{id}/policies/{name}", READER, "moorage:policies:show", policies.show, "Show a policy", response=policies_wire.OnePolicy),
    Route("PUT", "/ensembles/{id}/policies/{name}", MEMBER, "moorage:policies:update", policies.put, "Write a policy and see who breaks it", request=policies_wire.PolicyPut, response=policies_wire.OnePolicy, mutates=True, expensive=True),
    Route("DELETE", "/ensembles/{id}/policies/{name}", MEMBER, "moorage:policies:delete", policies.delete, "Drop a policy", status=204, mutates=True),
    Route("GET", "/policy-types", READER, "moorage:policy_types:list", policies.types, "List policy types with their parameters", response=policies_wire.PolicyTypes),
    Route("GET", "/policy-types/{type}", READER, "moorage:policy_types:show", policies.one_type, "Show a policy type", response=policies_wire.OnePolicyType),
    Route("GET", "/decisions", READER, "moorage:decisions:list", decisions.listing, "List decisions, newest first", response=decisions_wire.Decisions, query=(*SORTED, "ensemble_id", "all_projects")),
    Route("POST", "/decisions", MEMBER, "moorage:decisions:create", decisions.create, "Place an ensemble jointly and hold the places", request=decisions_wire.DecisionCreate, response=decisions_wire.OneDecision, status=201, mutates=True, expensive=True),
    Route("GET", "/decisions/{id}", READER, "moorage:decisions:show", decisions.show, "Show a decision", response=decisions_wire.OneDecision),
    Route("PATCH", "/decisions/{id}", MEMBER, "moorage:decisions:update", decisions.renew, "Hold longer", request=decisions_wire.DecisionPatch, response=decisions_wire.OneDecision, mutates=True),
    Route("DELETE", "/decisions/{id}", MEMBER, "moorage:decisions:release", decisions.release, "Give unclaimed places back", status=204, other=BROKEN, mutates=True),
    Route("POST", "/decisions/{id}/confirm", MEMBER, "moorage:decisions:confirm", decisions.confirm, "Keep what is claimed, free the rest", response=decisions_wire.Confirmed, mutates=True),
    Route("GET", "/decisions/{id}/explanation", READER, "moorage:decisions:explanation", explanations.of_decision, "Why there was no such decision", response=explanations_wire.OneExplanation, query=("instance",)),
    Route("GET", "/decisions/{id}/record", READER, "moorage:decisions:record", decision_records.show, "Show what a decision was made from", response=decision_records_wire.OneDecisionRecord, query=("instance",)),
    Route("GET", "/decisions/{id}/claims", READER, "moorage:claims:list", claims.listing, "List the claims of a decision", response=claims_wire.Claims, query=PAGE),
    Route("POST", "/decisions/{id}/claims", MEMBER, "moorage:claims:create", claims.create, "Take the place of a member for a server", request=claims_wire.ClaimCreate, response=claims_wire.OneClaim, status=201, mutates=True),
    Route("GET", "/claims/{id}", READER, "moorage:claims:show", claims.show, "Show a claim", response=claims_wire.OneClaim),
    Route("PATCH", "/claims/{id}", MEMBER, "moorage:claims:update", claims.change, "Tell what became of the server", request=claims_wire.ClaimPatch, response=claims_wire.OneClaim, mutates=True),
    Route("GET", "/shares", READER, "moorage:shares:list", shares.listing, "List shares given and received, oldest first", response=shares_wire.Shares, query=(*PAGE, "all_projects")),
    Route("GET", "/shares/{id}", READER, "moorage:shares:show", shares.show, "Show a share: the role that is offered, and to whom", response=shares_wire.OneShare),
    Route("POST", "/shares/{id}/accept", MEMBER, "moorage:shares:accept", shares.accept, "Accept a role: its members are placed for this project", response=shares_wire.OneShare, mutates=True),
    Route("POST", "/shares/{id}/revoke", MEMBER, "moorage:shares:revoke", shares.revoke, "Revoke or decline a role: its members leave the ensemble", response=shares_wire.OneShare, mutates=True),
    Route("GET", "/leases", READER, "moorage:leases:list", leases.listing, "List leases, oldest first", response=leases_wire.Leases, query=(*SORTED, "name", "state", "series", "reservation", *BETWEEN, "project_id", "all_projects")),
    Route("POST", "/leases", MEMBER, "moorage:leases:create", leases.create, "Lease places for a later period, with a proof", request=leases_wire.LeaseCreate, response=leases_wire.OneLease, status=201, mutates=True, other=((202, "Not now: it waits", waitlist_wire.OneWaitlistEntry),), expensive=True),
    Route("GET", "/leases/{id}", READER, "moorage:leases:show", leases.show, "Show a lease", response=leases_wire.OneLease),
    Route("PATCH", "/leases/{id}", MEMBER, "moorage:leases:update", leases.change, "Extend, shrink, grow, move or rename a lease", request=leases_wire.LeaseChange, response=leases_wire.OneLease, mutates=True, expensive=True),
    Route("DELETE", "/leases/{id}", MEMBER, "moorage:leases:cancel", leases.cancel, "Cancel a lease; one that has started ends now", status=204, other=BROKEN, mutates=True),
    Route("GET", "/leases/{id}/events", READER, "moorage:leases:events", leases.events, "List what happens because of a lease", response=leases_wire.LeaseEvents, query=PAGE),
    Route("GET", "/timeline", READER, "moorage:timeline:show", timeline.show, "Leases, offers, what waits, and absences in a period, laid out in rows and lanes", response=timeline_wire.OneTimeline, query=(*PAGE, *BETWEEN, "rows", "closed", "all_projects")),
    Route("GET", "/series", READER, "moorage:series:list", series.listing, "List series of leases, oldest first", response=series_wire.SeveralSeries, query=(*SORTED, "name", "all_projects")),
    Route("POST", "/series", MEMBER, "moorage:series:create", series.create, "Lease places again and again: every occurrence is granted, or none", request=series_wire.SeriesCreate, response=series_wire.OneSeries, status=201, mutates=True, expensive=True),
    Route("GET", "/series/{id}", READER, "moorage:series:show", series.show, "Show a series with its leases", response=series_wire.OneSeries),
    Route("PATCH", "/series/{id}", MEMBER, "moorage:series:update", series.rename, "Call a series and its leases otherwise", request=series_wire.SeriesChange, response=series_wire.OneSeries, mutates=True),
    Route("DELETE", "/series/{id}", MEMBER, "moorage:series:cancel", series.cancel, "Cancel what of a series has not started: all, from a number on, or one", response=series_wire.Cancelled, query=("from", "only"), mutates=True),
    Route("POST", "/series/{id}/extend", MEMBER, "moorage:series:extend", series.extend, "Add occurrences at the end: all of them, or none", request=series_wire.SeriesExtend, response=series_wire.OneSeries, mutates=True, expensive=True),
    Route("GET", "/waitlist", READER, "moorage:waitlist:list", waitlist.listing, "List leases that wait or have waited, oldest first", response=waitlist_wire.WaitlistEntries, query=(*SORTED, "status", "all_projects")),
    Route("GET", "/waitlist/{id}", READER, "moorage:waitlist:show", waitlist.show, "Show a lease that waits: its place in the order, why, and an estimate", response=waitlist_wire.OneWaitlistEntry),
    Route("DELETE", "/waitlist/{id}", MEMBER, "moorage:waitlist:cancel", waitlist.cancel, "Leave the waitlist", status=204, mutates=True),
    Route("GET", "/server-providers", READER, "moorage:server_providers:list", server_providers.listing, "List what servers offer to the project's slices", response=server_providers_wire.ServerProviders, query=(*PAGE, "all_projects")),
    Route("GET", "/server-providers/{server_id}", READER, "moorage:server_providers:show", server_providers.show, "Show what a server of the project offers", response=server_providers_wire.OneServerProvider),
    Route("PUT", "/server-providers/{server_id}", MEMBER, "moorage:server_providers:update", server_providers.put, "Say what a server offers, and to whom", request=server_providers_wire.ServerProviderPut, response=server_providers_wire.OneServerProvider, mutates=True),
    Route("DELETE", "/server-providers/{server_id}", MEMBER, "moorage:server_providers:delete", server_providers.delete, "Let a server offer nothing any more; with force its slices end", status=204, query=("force",), mutates=True),
    Route("GET", "/server-providers/{server_id}/slices", READER, "moorage:slices:list", server_providers.slices, "List the slices on a server of the project, whosever they are", response=server_providers_wire.Slices, query=PAGE),
    Route("PATCH", "/server-providers/{server_id}/slices/{id}", MEMBER, "moorage:slices:update", server_providers.change_slice, "Tell what became of a slice on a server of the project", request=server_providers_wire.SlicePatch, response=server_providers_wire.OneSlice, mutates=True),
    Route("GET", "/quotas", READER, "moorage:quotas:list", quotas.listing, "What the project may lease, hold and store, and what it has", response=quotas_wire.Quotas, query=(*PAGE, "all_projects")),
    Route("GET", "/quotas/{project_id}", READER, "moorage:quotas:show", quotas.show, "Show a project's quota and what is used of it", response=quotas_wire.OneQuota),
    Route("PATCH", "/quotas/{project_id}", OPERATOR, "moorage:quotas:update", quotas.change, "Say what a project may lease, hold and store", request=quotas_wire.QuotaChange, response=quotas_wire.OneQuota, mutates=True),
    Route("DELETE", "/quotas/{project_id}", OPERATOR, "moorage:quotas:delete", quotas.delete, "Let the defaults hold for a project again", status=204, mutates=True),
    Route("GET", "/offers", READER, "moorage:offers:list", offers.listing, "List offers that nobody has accepted, oldest first", response=offers_wire.Offers, query=(*SORTED, "over", *BETWEEN, "all_projects")),
    Route("POST", "/offers", MEMBER, "moorage:offers:create", offers.create, "Find windows in a range of starts and hold their places", request=offers_wire.OfferCreate, response=offers_wire.Offers, status=201, mutates=True, expensive=True),
    Route("GET", "/offers/{id}", READER, "moorage:offers:show", offers.show, "Show an offer", response=offers_wire.OneOffer),
    Route("DELETE", "/offers/{id}", MEMBER, "moorage:offers:withdraw", offers.withdraw, "Give an offer up", status=204, mutates=True),
    Route("POST", "/offers/{id}/accept", MEMBER, "moorage:offers:accept", offers.accept, "Make a lease of an offer; its siblings are given up", request=offers_wire.OfferAccept, response=leases_wire.OneLease, status=201, mutates=True),
    Route("GET", "/events", READER, "moorage:events:list", events.listing, "Read events by cursor, waiting for more", response=events_wire.Events, query=("limit", "after", "type", "subject", "wait", "project_id", "all_projects")),
    Route("GET", "/subscriptions", READER, "moorage:subscriptions:list", events.subscription_page, "List subscriptions, oldest first", response=events_wire.Subscriptions, query=(*PAGE, "all_projects")),
    Route("POST", "/subscriptions", MEMBER, "moorage:subscriptions:create", events.create_subscription, "Have events delivered to a URL", request=events_wire.SubscriptionCreate, response=events_wire.OneSubscription, status=201, mutates=True),
    Route("GET", "/subscriptions/{id}", READER, "moorage:subscriptions:show", events.show_subscription, "Show a subscription and how far it has come", response=events_wire.OneSubscription),
    Route("DELETE", "/subscriptions/{id}", MEMBER, "moorage:subscriptions:delete", events.delete_subscription, "Forget a subscription with its dead letters", status=204, mutates=True),
    Route("GET", "/subscriptions/{id}/dead-letters", READER, "moorage:subscriptions:dead_letters", events.letters, "List events that were given up", response=events_wire.DeadLetters, query=PAGE),
    Route("POST", "/subscriptions/{id}/resend", MEMBER, "moorage:subscriptions:resend", events.send_again, "Send dead letters once more", request=events_wire.Resend, response=events_wire.Resent, mutates=True),
    Route("POST", "/explanations", MEMBER, "moorage:explanations:create", explanations.create, "Would it fit, and if not, why not", request=explanations_wire.ExplanationCreate, response=explanations_wire.Explained, expensive=True),
    Route("GET", "/explanations", READER, "moorage:explanations:list", explanations.listing, "List refusals that are kept, newest first", response=explanations_wire.Explanations, query=(*SORTED, "ensemble", "stage", "since", "project_id", "all_projects")),
    Route("GET", "/explanations/{id}", READER, "moorage:explanations:show", explanations.show, "Show an explanation", response=explanations_wire.OneExplanation, query=("instance",)),
    Route("POST", "/hot", MEMBER, "moorage:hot:place", hot.place, "Place the servers of a Heat template", request=hot_wire.HotCreate, response=hot_wire.Hot, status=201, mutates=True, expensive=True),
    Route("GET", "/stacks/{id}", READER, "moorage:stacks:show", stacks.show, "Show a Heat stack's ensemble with its current decision", response=stacks_wire.OneStack),
    Route("PUT", "/stacks/{id}", MEMBER, "moorage:stacks:update", stacks.put, "Make the ensemble of a Heat stack equal to its template, in one decision", request=stacks_wire.StackPut, response=stacks_wire.OneStack, mutates=True, expensive=True),
    Route("DELETE", "/stacks/{id}", MEMBER, "moorage:stacks:delete", stacks.delete, "Forget a Heat stack's ensemble; its servers stay", status=204, other=BROKEN, mutates=True),
    Route("GET", "/templates", READER, "moorage:templates:list", templates.listing, "List templates, each in its newest version", response=templates_wire.Templates, query=(*SORTED, "name", "all_projects")),
    Route("POST", "/templates", MEMBER, "moorage:templates:create", templates.create, "Keep a template", request=templates_wire.TemplateCreate, response=templates_wire.OneTemplate, status=201, mutates=True, expensive=True),
    Route("GET", "/templates/{id}", READER, "moorage:templates:show", templates.show, "Show a template by id or name", response=templates_wire.OneTemplate, query=("version",)),
    Route("DELETE", "/templates/{id}", MEMBER, "moorage:templates:delete", templates.delete, "Forget every version of a template", status=204, mutates=True),
    Route("POST", "/templates/{id}/versions", MEMBER, "moorage:templates:revise", templates.revise, "Keep a template's next version", request=templates_wire.VersionCreate, response=templates_wire.OneTemplate, status=201, mutates=True, expensive=True),
    Route("POST", "/templates/{id}/instances", MEMBER, "moorage:templates:instantiate", templates.create_instance, "Make an ensemble of a template, and with decide place and hold it", request=templates_wire.InstanceCreate, response=ensembles_wire.OneEnsemble, status=201, mutates=True, expensive=True),
    Route("GET", "/flavors", READER, "moorage:flavors:list", flavors.listing, "List flavors", response=flavors_wire.Flavors, query=PAGE),
    Route("POST", "/flavors", OPERATOR, "moorage:flavors:create", flavors.create, "Write a flavor", request=flavors_wire.FlavorCreate, response=flavors_wire.OneFlavor, status=201, mutates=True),
    Route("POST", "/flavors/load", OPERATOR, "moorage:flavors:load", flavors.load, "Load `openstack flavor list --long -f json`", request=flavors_wire.FlavorLoad, response=flavors_wire.LoadedFlavors, mutates=True),
    Route("GET", "/flavors/{name}", READER, "moorage:flavors:show", flavors.show, "Show a flavor by id or name", response=flavors_wire.OneFlavor),
    Route("DELETE", "/flavors/{name}", OPERATOR, "moorage:flavors:delete", flavors.delete, "Forget a flavor", status=204, mutates=True),
    Route("GET", "/request-mix", OPERATOR, "moorage:request_mix:show", request_mix.show, "Show what others are expected to ask for, which decisions leave room for", response=request_mix_wire.OneRequestMix),
    Route("PUT", "/request-mix", OPERATOR, "moorage:request_mix:update", request_mix.put, "State what others are expected to ask for", request=request_mix_wire.RequestMixPut, response=request_mix_wire.OneRequestMix, mutates=True),
    Route("DELETE", "/request-mix", OPERATOR, "moorage:request_mix:delete", request_mix.delete, "Let the mix be counted from the ledger again", status=204, mutates=True),
    Route("GET", "/capacity", READER, "moorage:capacity:show", capacity.show, "Capacity over time, by resource class, and how many of a size fit", response=capacity_wire.OneCapacity, query=(*SCOPE, "step", "max_points", "by"), expensive=True),
    Route("POST", "/capacity/fit", READER, "moorage:capacity:fit", capacity.fit, "How many more fit, and what limits it", request=capacity_wire.FitCreate, response=capacity_wire.OneFit, expensive=True),
    Route("GET", "/capacity/windows", READER, "moorage:capacity:windows", capacity.windows, "When so many fit for so long", response=capacity_wire.Windows, query=(*SCOPE, "count", "duration"), expensive=True),
    Route("GET", "/capacity/planned", OPERATOR, "moorage:capacity_windows:list", capacity.list_planned, "List planned changes of capacity", response=capacity_wire.Planned, query=PAGE),
    Route("POST", "/capacity/planned", OPERATOR, "moorage:capacity_windows:create", capacity.create_planned, "Plan that hosts are away; refused where it would break a lease", request=capacity_wire.PlannedCreate, response=capacity_wire.OnePlanned, status=201, mutates=True, expensive=True),
    Route("GET", "/capacity/planned/{id}", OPERATOR, "moorage:capacity_windows:show", capacity.show_planned, "Show a planned change, and who is on its hosts", response=capacity_wire.OnePlanned),
    Route("DELETE", "/capacity/planned/{id}", OPERATOR, "moorage:capacity_windows:delete", capacity.delete_planned, "Delete the planned window", status=204, mutates=True),
    Route("GET", "/topology/domains", READER, "moorage:topology:show", fleet.show_topology, "Show all trees", response=fleet_wire.OneTopology),
    Route("PUT", "/topology/domains", OPERATOR, "moorage:topology:update", fleet.put, "Replace all trees", request=fleet_wire.TopologyPut, response=fleet_wire.OneTopology, mutates=True),
    Route("GET", "/fleet", OPERATOR, "moorage:fleet:show", fleet.show, "Hosts with their domains, capacity and use", response=fleet_wire.OneFleet, query=PAGE),
    Route("GET", "/fleet/map", OPERATOR, "moorage:fleet:map", fleet_map.show, "The fleet as columns at an instant: fill and state of every host, what fits, and what has changed", response=fleet_map_wire.OneFleetMap, query=("class", "at", "tree", "level", "flavor", "trait", "ensemble", "since")),
    Route("POST", "/fleet", OPERATOR, "moorage:fleet:load", fleet.load, "Load a part of a fleet", request=fleet_wire.FleetLoad, response=fleet_wire.FleetLoaded),
    Route("GET", "/hosts", OPERATOR, "moorage:hosts:list", hosts.listing, "List hosts: who is on them until when, and why one is closed", response=hosts_wire.Hosts, query=PAGE),
    Route("GET", "/hosts/{name}", OPERATOR, "moorage:hosts:show", hosts.show, "Show a host with its bookings", response=hosts_wire.OneHost, query=PAGE),
    Route("POST", "/hosts/{name}/close", OPERATOR, "moorage:hosts:close", hosts.close, "Close a host: nothing new is placed there", request=hosts_wire.HostClose, response=hosts_wire.OneStatus, mutates=True),
    Route("POST", "/hosts/{name}/open", OPERATOR, "moorage:hosts:open", hosts.reopen, "Open a host again that an operator has closed", response=hosts_wire.OneStatus, mutates=True),
    Route("PUT", "/hosts/{name}/service", OPERATOR, "moorage:hosts:service", hosts.put_service, "Say what Nova says of a host's compute service", request=hosts_wire.HostServicePut, response=hosts_wire.OneStatus, mutates=True),
    Route("GET", "/hosts/{name}/moves/{server_id}", OPERATOR, "moorage:hosts:move", hosts.move, "Say whether the policies of its ensemble let a server move to a host", response=hosts_wire.OneHostMove),
    Route("POST", "/simulations", OPERATOR, "moorage:simulations:create", simulations.create, "Say what would be if hosts were lost, closed or added, ensembles placed or policies changed; nothing is written", request=simulations_wire.SimulationCreate, response=simulations_wire.OneSimulation, expensive=True),
    Route("GET", "/plans", OPERATOR, "moorage:plans:list", plans.listing, "List plans, newest first", response=plans_wire.Plans, query=(*PAGE, "state", "kind")),
    Route("POST", "/plans", OPERATOR, "moorage:plans:create", plans.create, "Plan moves of servers: to drain or evacuate hosts, to repair or admit an ensemble, or to rebalance", request=plans_wire.PlanCreate, response=plans_wire.OnePlan, status=201, mutates=True, expensive=True),
    Route("GET", "/plans/{id}", OPERATOR, "moorage:plans:show", plans.show, "Show a plan with its moves", response=plans_wire.OnePlan),
    Route("POST", "/plans/{id}/apply", OPERATOR, "moorage:plans:apply", plans.apply, "Let the moves of a plan begin, and hold their targets", response=plans_wire.OnePlan, mutates=True),
    Route("POST", "/plans/{id}/pause", OPERATOR, "moorage:plans:pause", plans.pause, "Let no further move of a plan begin until it is applied again", response=plans_wire.OnePlan, mutates=True),
    Route("POST", "/plans/{id}/cancel", OPERATOR, "moorage:plans:cancel", plans.cancel, "Let no further move of a plan begin, for good", response=plans_wire.OnePlan, mutates=True),
    Route("DELETE", "/plans/{id}", OPERATOR, "moorage:plans:delete", plans.delete, "Delete a plan that was never applied or is over", status=204, mutates=True),
    Route("GET", "/survivability", OPERATOR, "moorage:survivability:show", simulations.survives, "Say for the loss of each domain of a level which ensembles have too few members left, and whether these can be placed again now", response=simulations_wire.OneSurvivability, query=("level", "tree", "lose", "domains", "time_limit"), expensive=True),
    Route("GET", "/bookings", OPERATOR, "moorage:bookings:list", fleet.bookings, "List live bookings", response=fleet_wire.Bookings, query=(*PAGE, "provider", "consumer", "decision")),
)
# fmt: on

EXACT: Final = "moorage:capacity:exact"
"""Callers who meet it see exact capacity and totals; others rounded counts, free or busy."""
FURTHER: Final[Mapping[str, Access]] = MappingProxyType({EXACT: OPERATOR, PRIORITY: OPERATOR})
"""Rules of no route: what a caller sees of an answer, or may request."""

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
            response=clock_wire.OneClock,
        ),
        Route(
            "PUT",
            path,
            CLOCK["moorage:clock:update"],
            "moorage:clock:update",
            own.put,
            "Move time forward",
            request=clock_wire.ClockPut,
            response=clock_wire.OneClock,
        ),
    )
