"""The table of commands: words, class in this package (imported only when run) and summary.

The summary is the first line of the class's docstring, which a test compares, so that help
need not import every command.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NOUNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ensemble": "members placed together under policies",
        "member": "the members of an ensemble",
        "decision": "a joint placement and its hold",
        "claim": "held places taken for real servers",
        "lease": "places reserved for a later period, usable by others until then",
        "series": "leases that recur",
        "capacity": "capacity over time: what is free, how many fit and when",
        "quota": "limits of what a project may lease, hold and store",
        "offer": "leases proposed, and held until they expire",
        "waitlist": "lease requests that wait for capacity",
        "policy": "the types of policies (known offline)",
        "hot": "Heat templates, placed jointly",
        "template": "versioned descriptions with parameters",
        "explanation": "explanations of refused requests",
        "event": "events of ensembles, leases and capacity, in order",
        "subscription": "events delivered to a URL",
        "flavor": "named sizes of members",
        "topology": "failure domains: zones, racks, ...",
        "provider": "resource providers",
        "host": "hosts, their bookings, and why one is closed",
        "fleet": "hosts with topology, flavors and load, as one file",
        "sim": "a local server over a simulated fleet, with a settable clock",
        "replay": "solve a saved instance again and compare",
        "serve": "run the service",
        "config": "the settings of the service on this machine",
        "admin": "import from Placement or Blazar, export, audit",
        "token": "the file of static tokens (auth = token-file)",
        "demo": "a demonstration on a simulated fleet",
        "complete": "shell completion",
    }
)

COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ensemble check": (
            "ensemble_check:Check",
            "Check a description offline: names, policies, contradictions.",
        ),
        "ensemble create": (
            "ensemble_create:Create",
            "Describe an ensemble, place it jointly and hold the places.",
        ),
        "ensemble show": (
            "ensemble:Show",
            "Show an ensemble, the places of its members and what it survives.",
        ),
        "ensemble list": (
            "ensemble:List",
            "List ensembles, each with the status of its newest decision.",
        ),
        "ensemble set": (
            "ensemble_set:Set",
            "Change counts or policies of an ensemble and decide again.",
        ),
        "ensemble confirm": (
            "ensemble:Confirm",
            "Close an ensemble's decision: what is claimed stays, the rest is freed.",
        ),
        "ensemble delete": ("ensemble:Delete", "Delete an ensemble and release its held places."),
        "member list": ("member:List", "List an ensemble's members."),
        "member add": (
            "member:Add",
            "Add a running server to a role, or describe further members.",
        ),
        "member remove": ("member:Remove", "Remove a member from its ensemble."),
        "decision show": (
            "decision:Show",
            "Show a decision: the place of each member, and how it was found.",
        ),
        "decision list": ("decision:List", "List decisions, newest first."),
        "decision renew": ("decision:Renew", "Extend the hold of a decision."),
        "decision confirm": (
            "decision:Confirm",
            "Close a decision: what is claimed stays, the rest is freed.",
        ),
        "decision flavors": (
            "decision:Flavors",
            "Show the Nova flavors whose servers take a decision's held places.",
        ),
        "decision release": ("decision:Release", "Release a decision's places."),
        "claim create": ("claim:Create", "Take a member's held place for the server described."),
        "claim show": ("claim:Show", "Show a claim."),
        "claim list": (
            "claim:List",
            "List the claims of an ensemble's newest decision, also when its hold has lapsed.",
        ),
        "claim set": ("claim:Set", "Report the outcome of a claimed server."),
        "lease create": (
            "lease_create:Create",
            "Lease the places of an ensemble for a period, granted only with a proof.",
        ),
        "lease show": (
            "lease:Show",
            "Show a lease: its period, its places, and the servers that end early for it.",
        ),
        "lease list": ("lease:List", "List leases, oldest first."),
        "lease gantt": (
            "lease_gantt:Gantt",
            "Draw leases over time: a row for each, as wide as the terminal.",
        ),
        "lease extend": (
            "lease_change:Extend",
            "Make a lease end later; its members keep their places.",
        ),
        "lease shrink": ("lease_change:Shrink", "Make a lease end earlier, or have fewer places."),
        "lease grow": ("lease_change:Grow", "Give a lease more places; the present ones are kept."),
        "lease move": ("lease_change:Move", "Move a lease that has not started to another period."),
        "lease rename": ("lease_change:Rename", "Rename a lease."),
        "lease cancel": ("lease:Cancel", "Cancel a lease, or end it now where it has started."),
        "lease events": ("lease:Events", "List a lease's events, with their times and outcomes."),
        "series list": ("series:List", "List series of leases, oldest first."),
        "series show": (
            "series:Show",
            "Show a series: its rule, its leases, and occurrences that were not granted.",
        ),
        "series extend": (
            "series_create:Extend",
            "Add occurrences to a series, after its last one: all of them, or none.",
        ),
        "series rename": ("series:Rename", "Rename a series and its leases."),
        "series cancel": ("series:Cancel", "Cancel the leases of a series that have not started."),
        "capacity show": (
            "capacity:Show",
            "Show capacity over time, and how many of a flavor fit.",
        ),
        "capacity calendar": (
            "calendar:Calendar",
            "Draw what is free and busy: a row for each zone and resource class.",
        ),
        "capacity fit": (
            "capacity:Fit",
            "Count how many more members, ensembles or servers of a flavor fit.",
        ),
        "capacity window create": (
            "capacity_window:Create",
            "Plan when hosts are unavailable: maintenance, decommission or delivery.",
        ),
        "capacity window list": ("capacity_window:List", "List planned windows."),
        "capacity window show": (
            "capacity_window:Show",
            "Show a planned window, and the bookings on its hosts in that period.",
        ),
        "capacity window delete": (
            "capacity_window:Delete",
            "Delete a planned window; its hosts are available again.",
        ),
        "capacity windows": (
            "capacity:Windows",
            "Find when a number of servers of a flavor fit for a duration.",
        ),
        "quota set": ("quota:Set", "Set the quotas of a project."),
        "quota show": ("quota:Show", "Show the quotas and the use of a project."),
        "quota list": ("quota:List", "List project quotas, with the use of each."),
        "quota unset": ("quota:Unset", "Reset a project's quotas to the service's defaults."),
        "offer create": (
            "offer:Create",
            "Find the earliest windows in which something fits, and hold their places.",
        ),
        "offer list": ("offer:List", "List open offers, oldest first."),
        "offer show": ("offer:Show", "Show an offer: its window, its places, and when it expires."),
        "offer accept": (
            "offer:Accept",
            "Make a lease of an offer; other offers of the same request are withdrawn.",
        ),
        "offer delete": ("offer:Delete", "Delete an offer; its places are free at once."),
        "waitlist list": ("waitlist:List", "List waitlist entries, oldest first."),
        "waitlist show": (
            "waitlist:Show",
            "Show a waitlist entry: its place in line, why it waits, and the estimated start.",
        ),
        "waitlist cancel": ("waitlist:Cancel", "Leave the waitlist."),
        "explanation list": (
            "explanation:List",
            "List explanations of refused requests, newest first.",
        ),
        "explanation show": (
            "explanation:Show",
            "Show why a request was refused, and changes with which it would be granted.",
        ),
        "event list": (
            "event:List",
            "List events, oldest first, with the cursor from which to continue.",
        ),
        "event follow": ("event:Follow", "Print events as they happen, until interrupted."),
        "subscription create": (
            "subscription:Create",
            "Deliver events to a URL; the secret that signs them is shown this once.",
        ),
        "subscription list": (
            "subscription:List",
            "List subscriptions, with the number of events delivered.",
        ),
        "subscription show": (
            "subscription:Show",
            "Show a subscription, with the state of its deliveries.",
        ),
        "subscription delete": (
            "subscription:Delete",
            "Delete a subscription with its dead letters.",
        ),
        "subscription deadletters": (
            "subscription:DeadLetters",
            "List the events that could not be delivered to a subscription.",
        ),
        "subscription resend": (
            "subscription:Resend",
            "Send dead letters of a subscription again: those named, or all.",
        ),
        "policy list": ("policy:List", "List the types of policies."),
        "policy show": ("policy:Show", "Explain a type of policy, with examples."),
        "hot place": ("hot:Place", "Place the servers of a Heat template jointly."),
        "flavor list": ("flavor:List", "List flavors."),
        "flavor show": ("flavor:Show", "Show a flavor."),
        "flavor create": ("flavor:Create", "Create or replace a flavor."),
        "flavor delete": ("flavor:Delete", "Delete a flavor."),
        "flavor load": (
            "flavor:Load",
            "Load flavors from the JSON of `openstack flavor list --long`.",
        ),
        "topology show": (
            "topology:Show",
            "Show the trees of domains, with the number of hosts in each.",
        ),
        "topology load": ("topology:Load", "Replace the topology by that of a file."),
        "fleet load": ("fleet:Load", "Load a fleet file: hosts, topology, flavors and load."),
        "fleet show": ("fleet:Show", "Draw zones, racks and hosts with their use."),
        "host list": ("host:List", "List hosts with their bookings, and why one is closed."),
        "host show": ("host:Show", "Show a host and its bookings."),
        "sim start": (
            "sim:Start",
            "Start a server over a fleet, in the background, with a clock you set.",
        ),
        "sim stop": ("sim:Stop", "Stop a simulation and remove its database."),
        "sim resume": (
            "sim:Resume",
            "Restart a simulation that was killed, or ended with its machine.",
        ),
        "sim list": ("sim:List", "List simulations, running and killed ones."),
        "sim clock": ("sim:Clock", "Show a simulation's time, or set it."),
        "sim fail": ("sim_hosts:Fail", "Make a host of a simulation fail."),
        "sim recover": ("sim_hosts:Recover", "Bring back a failed host of a simulation."),
        "sim replay": (
            "sim_replay:Replay",
            "Place an ensemble's members one at a time, as Nova does.",
        ),
        "replay": ("sim_instance:Replay", "Solve a saved instance again and compare the answers."),
        "template create": (
            "template:Create",
            "Store a template: a description with parameters, or a Heat template.",
        ),
        "template revise": (
            "template:Revise",
            "Store the next version of a template; earlier ones stay.",
        ),
        "template list": ("template:List", "List templates, each in its newest version."),
        "template show": (
            "template:Show",
            "Show a template: its parameters and what it describes.",
        ),
        "template delete": (
            "template:Delete",
            "Delete every version of a template; its ensembles stay.",
        ),
        "template instantiate": (
            "template:Instantiate",
            "Create an ensemble from a template, place it jointly and hold the places.",
        ),
        "serve": ("serve:Serve", "Run the service."),
        "config show": (
            "config:Show",
            "Show every setting with its value, the source of the value, and the default.",
        ),
        "admin import placement": (
            "admin_import:Placement",
            "Take over a Placement service: all its records, with UUIDs and generations.",
        ),
        "admin import blazar": (
            "admin_import_blazar:Blazar",
            "Take over a Blazar: its reservable hosts and floating IPs, and leases not ended.",
        ),
        "admin audit": (
            "admin_audit:Audit",
            "Check the ledger: orphans, overages, dangling references.",
        ),
        "provider tree": (
            "provider:Tree",
            "Show a resource provider tree, with inventories and traits.",
        ),
        "fleet import": ("fleet_import:Import", "Load hosts from a listing of Nova's hypervisors."),
        "admin export": (
            "admin_export:Export",
            "Write the ledger back as requests of the Placement API.",
        ),
        "admin replay": (
            "admin_export:Replay",
            "Send the requests of a file to a Placement service, one after the other.",
        ),
        "token create": (
            "token:Create",
            "Create a token, add its hash to the token file, and show the token once.",
        ),
        "token list": (
            "token:List",
            "List the tokens of a token file by name and project; never their values.",
        ),
        "token revoke": (
            "token:Revoke",
            "Remove a token from the token file; a running service refuses it within a second.",
        ),
        "demo": (
            "demo:Demo",
            "Run a demonstration: from an empty fleet to a held placement and a refusal.",
        ),
        "complete": ("complete:Complete", "Print the completion script for your shell."),
    }
)
