"""Every command: its words, its class (imported only when run), its summary.

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
        "ensemble": "things placed together under policies",
        "member": "the members of an ensemble",
        "decision": "a joint placement and the hold that keeps it",
        "claim": "one held place, taken for a real server",
        "lease": "places promised for a later period, used until then",
        "series": "leases that recur",
        "capacity": "how much there is over time, how many fit and when",
        "quota": "what a project may lease and hold",
        "offer": "leases proposed, and held until they expire",
        "waitlist": "leases that could not be had and wait, in a promised order",
        "policy": "the types of policies (known offline)",
        "hot": "Heat templates in, decisions out",
        "template": "descriptions with parameters, kept in versions",
        "event": "what happened, in its order",
        "subscription": "events delivered to a URL",
        "flavor": "named sizes of members",
        "topology": "zones, racks and whatever else may fail",
        "provider": "hosts and what is inside, as the ledger knows them",
        "fleet": "hosts with topology, flavors and load, as one file",
        "sim": "a server over a described fleet, with a clock you set",
        "replay": "solve a saved instance once more and compare",
        "serve": "run the service",
        "config": "the settings of the service on this machine",
        "admin": "take over a Placement service, leave, look after the ledger",
        "token": "the file of static tokens (auth = token-file)",
        "demo": "the main job, really run, from fleet to relaxations",
        "complete": "print the completion for your shell",
    }
)

_CLI: Final = "moorage.cli"

COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ensemble check": (
            f"{_CLI}.ensemble_check:Check",
            "Judge a description offline: names, policies, contradictions.",
        ),
        "ensemble create": (
            f"{_CLI}.ensemble_create:Create",
            "Describe an ensemble, place it jointly and hold the places.",
        ),
        "ensemble show": (
            f"{_CLI}.ensemble:Show",
            "Show an ensemble, where its members stand and what it survives.",
        ),
        "ensemble list": (f"{_CLI}.ensemble:List", "List ensembles."),
        "ensemble set": (
            f"{_CLI}.ensemble_set:Set",
            "Change counts or policies of an ensemble and decide anew.",
        ),
        "ensemble confirm": (
            f"{_CLI}.ensemble:Confirm",
            "Close an ensemble's decision: what is claimed stays, the rest is freed.",
        ),
        "ensemble delete": (
            f"{_CLI}.ensemble:Delete",
            "Forget an ensemble and release what it holds.",
        ),
        "member list": (f"{_CLI}.member:List", "List an ensemble's members."),
        "member add": (
            f"{_CLI}.member:Add",
            "Let an existing server join a role, or describe further members.",
        ),
        "member remove": (f"{_CLI}.member:Remove", "Take a member out of its ensemble."),
        "decision show": (
            f"{_CLI}.decision:Show",
            "Show a decision: who stands where, and how it was found.",
        ),
        "decision list": (f"{_CLI}.decision:List", "List decisions, newest first."),
        "decision renew": (f"{_CLI}.decision:Renew", "Hold a decision's places longer."),
        "decision confirm": (
            f"{_CLI}.decision:Confirm",
            "Close a decision: what is claimed stays, the rest is freed.",
        ),
        "decision release": (f"{_CLI}.decision:Release", "Give a decision's places back."),
        "claim create": (
            f"{_CLI}.claim:Create",
            "Take a member's held place for the server described.",
        ),
        "claim show": (f"{_CLI}.claim:Show", "Show a claim."),
        "claim list": (
            f"{_CLI}.claim:List",
            "List the claims of an ensemble's newest decision, also when its hold has lapsed.",
        ),
        "claim set": (f"{_CLI}.claim:Set", "Report what became of a claimed server."),
        "lease create": (
            f"{_CLI}.lease_create:Create",
            "Lease the places of an ensemble for a period, granted only with a proof.",
        ),
        "lease show": (
            f"{_CLI}.lease:Show",
            "Show a lease: its period, what it holds, and who makes room for it.",
        ),
        "lease list": (f"{_CLI}.lease:List", "List leases, oldest first."),
        "lease gantt": (
            f"{_CLI}.lease_gantt:Gantt",
            "Draw leases over time: a row for each, as wide as the terminal.",
        ),
        "lease extend": (
            f"{_CLI}.lease_change:Extend",
            "Let a lease end later, its members staying where they are.",
        ),
        "lease shrink": (
            f"{_CLI}.lease_change:Shrink",
            "Let a lease end earlier, or have fewer places.",
        ),
        "lease grow": (
            f"{_CLI}.lease_change:Grow",
            "Give a lease more places; those it has stay where they are.",
        ),
        "lease move": (
            f"{_CLI}.lease_change:Move",
            "Move a lease that has not started to another period.",
        ),
        "lease rename": (f"{_CLI}.lease_change:Rename", "Call a lease otherwise."),
        "lease cancel": (
            f"{_CLI}.lease:Cancel",
            "Cancel a lease, or end it now where it has started.",
        ),
        "lease events": (
            f"{_CLI}.lease:Events",
            "List what happens because of a lease and when, with what came of it.",
        ),
        "series list": (f"{_CLI}.series:List", "List series of leases, oldest first."),
        "series show": (
            f"{_CLI}.series:Show",
            "Show a series: its rule, its leases, and what of it could not be granted.",
        ),
        "series extend": (
            f"{_CLI}.series_create:Extend",
            "Add occurrences to a series, after its last one: all of them, or none.",
        ),
        "series rename": (
            f"{_CLI}.series:Rename",
            "Call a series otherwise, and its leases with it.",
        ),
        "series cancel": (
            f"{_CLI}.series:Cancel",
            "Cancel the leases of a series that have not started.",
        ),
        "capacity show": (
            f"{_CLI}.capacity:Show",
            "Show capacity over time, and how many of a flavor fit.",
        ),
        "capacity calendar": (
            f"{_CLI}.calendar:Calendar",
            "Draw what is free and busy: a row for each zone and resource class.",
        ),
        "capacity fit": (
            f"{_CLI}.capacity:Fit",
            "Count how many more members, ensembles or servers of a flavor fit.",
        ),
        "capacity window create": (
            f"{_CLI}.capacity_window:Create",
            "Plan that hosts are away: maintenance, decommission or delivery.",
        ),
        "capacity window list": (f"{_CLI}.capacity_window:List", "List when hosts are away."),
        "capacity window show": (
            f"{_CLI}.capacity_window:Show",
            "Show when hosts are away, and who is on them then.",
        ),
        "capacity window delete": (
            f"{_CLI}.capacity_window:Delete",
            "Think better of it: the hosts are there.",
        ),
        "capacity windows": (
            f"{_CLI}.capacity:Windows",
            "Find when so many of a flavor fit for so long.",
        ),
        "quota set": (f"{_CLI}.quota:Set", "Say what a project may lease and hold."),
        "quota show": (
            f"{_CLI}.quota:Show",
            "Show what a project may lease and hold, and what it has.",
        ),
        "quota list": (
            f"{_CLI}.quota:List",
            "List the projects of which something is said, and what they have.",
        ),
        "quota unset": (
            f"{_CLI}.quota:Unset",
            "Let the service's defaults hold for a project again.",
        ),
        "offer create": (
            f"{_CLI}.offer_create:Create",
            "Find the earliest windows in which something fits, and hold their places.",
        ),
        "offer list": (
            f"{_CLI}.offer:List",
            "List offers that nobody has accepted, oldest first.",
        ),
        "offer show": (
            f"{_CLI}.offer:Show",
            "Show an offer: its window, what it holds, and until when.",
        ),
        "offer accept": (
            f"{_CLI}.offer:Accept",
            "Make a lease of an offer; other offers of the same request are given up.",
        ),
        "offer delete": (
            f"{_CLI}.offer:Delete",
            "Give an offer up: its places are free at once.",
        ),
        "waitlist list": (
            f"{_CLI}.waitlist:List",
            "List leases that wait, or have waited, oldest first.",
        ),
        "waitlist show": (
            f"{_CLI}.waitlist:Show",
            "Show a lease that waits: its place in the order, why it waits, and an estimate.",
        ),
        "waitlist cancel": (
            f"{_CLI}.waitlist:Cancel",
            "Wait no longer.",
        ),
        "event list": (
            f"{_CLI}.event:List",
            "List what happened, oldest first, with the cursor to go on from.",
        ),
        "event follow": (
            f"{_CLI}.event:Follow",
            "Tell what happens as it happens, until you stop it.",
        ),
        "subscription create": (
            f"{_CLI}.subscription:Create",
            "Have events delivered to a URL; the secret they are signed with is shown this once.",
        ),
        "subscription list": (
            f"{_CLI}.subscription:List",
            "List subscriptions, with how far each has come.",
        ),
        "subscription show": (
            f"{_CLI}.subscription:Show",
            "Show a subscription: what it is for, and what came of its deliveries.",
        ),
        "subscription delete": (
            f"{_CLI}.subscription:Delete",
            "Forget a subscription with its dead letters.",
        ),
        "subscription deadletters": (
            f"{_CLI}.subscription:DeadLetters",
            "List the events that were given up for a subscription.",
        ),
        "subscription resend": (
            f"{_CLI}.subscription:Resend",
            "Send dead letters of a subscription once more: those named, or all.",
        ),
        "policy list": (f"{_CLI}.policy:List", "List the types of policies."),
        "policy show": (f"{_CLI}.policy:Show", "Explain a type of policy, with examples."),
        "hot place": (
            f"{_CLI}.hot:Place",
            "Place the servers of a Heat template jointly.",
        ),
        "flavor list": (f"{_CLI}.flavor:List", "List flavors."),
        "flavor show": (f"{_CLI}.flavor:Show", "Show a flavor."),
        "flavor create": (f"{_CLI}.flavor:Create", "Make or replace a flavor."),
        "flavor delete": (f"{_CLI}.flavor:Delete", "Delete a flavor."),
        "flavor load": (
            f"{_CLI}.flavor:Load",
            "Load flavors from the JSON of `openstack flavor list --long`.",
        ),
        "topology show": (
            f"{_CLI}.topology:Show",
            "Show the trees of domains, with the number of hosts in each.",
        ),
        "topology load": (f"{_CLI}.topology:Load", "Replace the topology by a file's."),
        "fleet load": (
            f"{_CLI}.fleet:Load",
            "Load a fleet file: hosts, topology, flavors and load.",
        ),
        "fleet show": (f"{_CLI}.fleet:Show", "Draw zones, racks and hosts with their fill."),
        "sim start": (
            f"{_CLI}.sim:Start",
            "Start a server over a fleet, in the background, with a clock you set.",
        ),
        "sim stop": (f"{_CLI}.sim:Stop", "Stop a simulation and drop its database."),
        "sim resume": (
            f"{_CLI}.sim:Resume",
            "Take up a simulation again that was killed, or ended with its machine.",
        ),
        "sim list": (
            f"{_CLI}.sim:List",
            "List simulations: those that run, and those that were killed.",
        ),
        "sim clock": (f"{_CLI}.sim:Clock", "Show a simulation's time, or set it."),
        "sim fail": (f"{_CLI}.sim_hosts:Fail", "Let a host of a simulation fail."),
        "sim recover": (
            f"{_CLI}.sim_hosts:Recover",
            "Let a host of a simulation that failed come back.",
        ),
        "sim replay": (
            f"{_CLI}.sim_replay:Replay",
            "Place an ensemble's members one by one, as a scheduler without the whole does.",
        ),
        "replay": (
            f"{_CLI}.sim_instance:Replay",
            "Solve a saved instance once more and compare the answers.",
        ),
        "template create": (
            f"{_CLI}.template:Create",
            "Keep a template: a description with parameters, or a Heat template.",
        ),
        "template revise": (
            f"{_CLI}.template:Revise",
            "Keep a template's next version; those before it stay.",
        ),
        "template list": (
            f"{_CLI}.template:List",
            "List templates, each in its newest version.",
        ),
        "template show": (
            f"{_CLI}.template:Show",
            "Show a template: its parameters and what it describes.",
        ),
        "template delete": (
            f"{_CLI}.template:Delete",
            "Forget every version of a template; ensembles made of it stay.",
        ),
        "template instantiate": (
            f"{_CLI}.template:Instantiate",
            "Make an ensemble of a template, place it jointly and hold the places.",
        ),
        "serve": (f"{_CLI}.serve:Serve", "Run the service."),
        "config show": (
            f"{_CLI}.config:Show",
            "Show every setting with its value, where that came from, and the default.",
        ),
        "admin import placement": (
            f"{_CLI}.admin_import:Placement",
            "Take over a Placement service: all it knows, with UUIDs and generations.",
        ),
        "admin import blazar": (
            f"{_CLI}.admin_import_blazar:Blazar",
            "Take over a Blazar: what it offers for reservation, and leases not ended.",
        ),
        "admin audit": (
            f"{_CLI}.admin_audit:Audit",
            "Look for what is not as it should be: orphans, overages, dangling references.",
        ),
        "provider tree": (
            f"{_CLI}.provider:Tree",
            "Show a resource provider and all below it, with inventories and traits.",
        ),
        "fleet import": (
            f"{_CLI}.fleet_import:Import",
            "Load the hosts that Nova knows, from a listing of its hypervisors.",
        ),
        "admin export": (
            f"{_CLI}.admin_export:Export",
            "Write the ledger back as requests of the Placement API.",
        ),
        "admin replay": (
            f"{_CLI}.admin_export:Replay",
            "Send the requests of a file to a Placement service, one after the other.",
        ),
        "token create": (
            f"{_CLI}.token:Create",
            "Make a token, add its hash to the token file, and show it this once.",
        ),
        "token list": (
            f"{_CLI}.token:List",
            "List the tokens of a token file: whose they are, never what they are.",
        ),
        "token revoke": (
            f"{_CLI}.token:Revoke",
            "Take a token out of the token file; a running service refuses it within a second.",
        ),
        "demo": (
            f"{_CLI}.demo:Demo",
            "Run the main job for real: from an empty fleet to relaxations that work.",
        ),
        "complete": (
            f"{_CLI}.complete:Complete",
            "Print what makes your shell complete nouns, verbs and options.",
        ),
    }
)
