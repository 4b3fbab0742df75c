"""The scripts of the demonstrations: commands, exit statuses, and expected facts in the output.

`{id}` in a command is the ensemble's id, shortened as a person would, `{claim}` a claim's; they are
known from the commands that created them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from moorage.cli.output import CONFLICT, FORBIDDEN, INFEASIBLE, OK

NOW: Final = "2026-11-21T09:00:00Z"
FIRST: Final = "moorage-sim"
SECOND: Final = "thousand"


@dataclass(frozen=True, slots=True)
class Step:
    """One command line. `facts` are regular expressions that its output must contain.

    One with `patience` is typed again until it does: what a worker of the service does takes it
    some time.
    """

    command: str
    facts: tuple[str, ...] = ()
    status: int = OK
    remark: str = ""
    patience: bool = False


def _claim(member: str, flavor: str, remark: str = "") -> Step:
    command = f"claim create {{id}} {member} --flavor {flavor} --image debian --network shop-net"
    facts = (
        rf"^claim [0-9a-f]{{8}}  building   {re.escape(member)} at zone az1, rack r\d, host h\d$",
        r"^present as X-Openstack-Request-Id: req-",
    )
    return Step(command, facts, remark=remark)


SHOP: Final = (
    Step(
        f"sim start --fleet three-racks.yaml --now {NOW}",
        (r"three-racks: 9 hosts",),
        remark="A fleet of three racks, served by the real service with a clock that stands still.",
    ),
    Step("fleet show", (r"9 hosts", r"8/16", r"10/16")),
    Step(
        "ensemble check shop.yaml",
        (
            (
                r"^OK 3 roles, 9 members, 4 policies;"
                r" statically satisfiable on any fleet with >= 3 racks$"
            ),
        ),
        remark="A shop in three tiers that survives the loss of a rack. First, a check offline.",
    ),
    Step(
        "ensemble create -f shop.yaml --dry-run",
        (r"^verdict feasible \(computed at revision \d+\)   racks used 3   hosts used \d$",),
        remark="Would it fit? Decided by the same code, and nothing is written.",
    ),
    Step(
        "ensemble create -f shop.yaml --hold 10m",
        (
            (
                r"^id [0-9a-f]{8}  decision [0-9a-f]{8} held until 09:10:00Z  policies 4/4"
                r"  max additional: app 40, db 6, web 5$"
            ),
        ),
        remark="All nine at once, or none; the places are held for ten minutes.",
    ),
    Step("ensemble show {id} --map", (r"r1.*r2.*r3", r"db\[")),
    Step(
        "sim replay shop.yaml --sequential --order web,app,db",
        (r'^FAIL at db\[1\]: proximity "pair" and survive "db-ha" leave no host$',),
        remark="The same shop on the same fleet, placed one server at a time: it fails.",
    ),
    _claim(
        "db[0]", "m1.xlarge", "Its servers are created one by one, each in the place held for it."
    ),
    Step(
        "claim create {id} db[1] --flavor m1.2xlarge --image debian --network shop-net",
        (
            (
                r"^409 ensemble\.description_mismatch: flavor\.VCPU described 8 requested 16"
                r" \(exceeds\)"
            ),
            r"remedies: resubmit, redecide, supersede$",
        ),
        status=CONFLICT,
        remark="A server larger than its description does not get the place.",
    ),
    Step(
        "hot place shop-hot.yaml -e env.yaml --ensemble {id} --emit placed.yaml",
        (r"written to placed\.yaml",),
        remark="The same decision for Heat: a template in, the template with the decision out.",
    ),
    Step(
        "hot place placed.yaml --ensemble {id}",
        (r"db\[0\]",),
        remark="The file written is plain HOT, and describes the same members.",
    ),
    _claim("db[1]", "m1.xlarge", "The other eight."),
    _claim("db[2]", "m1.xlarge"),
    *(_claim(f"app[{i}]", "m1.medium") for i in range(3)),
    *(_claim(f"web[{i}]", "m1.small") for i in range(3)),
    Step("ensemble confirm {id}", (r"^confirmed 9/9 claimed, 0 released$",)),
    Step(
        "ensemble set {id} --member db:count=4 --policy db-ha:keep=3 --dry-run",
        (
            r"^infeasible \[policy\]  conflict \(minimal\): ",
            r"db-ha needs 4 racks.*  <->  .*racks.*: 3",
            r"^relaxations \(each solved\): .*db-ha keep 3->2: fits now",
            r"relaxations .*db count 4->5: fits now",
        ),
        status=INFEASIBLE,
        remark="Four databases of which three survive do not fit here. Why, and what would fit:",
    ),
    Step(
        "ensemble show {id} --survivability",
        (r"lose any 1 rack: .*db keeps 2 of 3 OK", r"lose any 1 host: .*web keeps 2 of 3 OK"),
    ),
    Step("sim stop", (r"^stopped moorage-sim$",)),
)
"""A three-tier application that survives a rack, from fleet to relaxations."""

SIXTY: Final = (
    Step(
        f"sim start --fleet thousand-hosts.yaml --name {SECOND} --now {NOW}",
        (r"1000 hosts",),
        remark="Sixty servers in eight roles on a thousand hosts, their memory two thirds full.",
    ),
    Step("fleet show", (r"1000 hosts",)),
    Step("ensemble check sixty.yaml", (r"^OK 8 roles, 60 members, 14 policies",)),
    Step(
        "ensemble create -f sixty.yaml --hold 10m",
        (r"^id [0-9a-f]{8}  decision [0-9a-f]{8} held until 09:10:00Z  policies 1[34]/14",),
    ),
    Step("ensemble show {id} --map", (r"az1", r"az2", r"az3", r"worker\[")),
    Step("sim stop", (rf"^stopped {SECOND}$",)),
)
"""A larger one."""


EDGE_NAME: Final = "edge"
PROJECT: Final = "nfv"
_RANGE: Final = "--earliest 2026-12-07T08:00Z --duration 4d10h"


def _server(number: int) -> tuple[Step, Step]:
    """A step that creates a server in one of the held places."""
    uuid = f"00000000-0000-4000-8000-00000000000{number}"
    return (
        Step(
            f"claim create {{id}} server[{number}] --flavor edge:28vcpu", (r"^claim .* building",)
        ),
        Step(f"claim set {{claim}} --active --server {uuid}", (r"active",)),
    )


def _clock(instant: str, remark: str = "") -> Step:
    return Step(f"sim clock {instant}", (f"^{instant}$",), remark=remark)


EDGE: Final = (
    Step(
        f"sim start --fleet edge.yaml --now {NOW} --name {EDGE_NAME} --end-servers",
        (r"edge: 4 hosts, 2 domains",),
        remark="Four hosts with SR-IOV in two racks. An operator sets a project's quotas.",
    ),
    Step("topology load racks.yaml", (r"^topology loaded: 2 racks$",)),
    Step(
        "provider tree n2",
        (
            r"numa0 .*\n.*pf:0000:3b:00.0 {SRIOV_NET_VF: 8} \[CUSTOM_PHYSNET_A HW_NIC_SRIOV\]",
            r"fpga:0000:b0:00.0 {FPGA: 1} \[CUSTOM_FPGA_XCU250\]",
            r"pf:0000:af:00.0 {SRIOV_NET_VF: 8} \[CUSTOM_PHYSNET_B HW_NIC_SRIOV\]",
        ),
    ),
    Step(
        f"quota set {PROJECT} --lease-unit-hours 500 --lease-horizon 90d --lease-max-length 30d",
        (r"lease-unit-hours +500 +0 +500", r"lease-horizon +90d", r"lease-max-length +30d"),
    ),
    Step(
        "template create upf -f upf.yaml",
        (r"^upf version 1",),
        remark="Four packet functions, one per host, for five days next month: a lease.",
    ),
    Step(
        f"offer create --template upf --param count=4 {_RANGE} --hold 1h",
        (r"^o1  2026-12-07T08:00Z \.\. 2026-12-11T18:00Z  424 unit-hours  expires in 60m$",),
    ),
    Step(
        "offer accept o1 --name upf-dec --expiry 2h --lead 30m --before-start bounded,preemptible",
        (r"^lease L1  pending  guarantee: proved$",),
    ),
    Step(
        "ensemble create --server edge:28vcpu --count 3",
        (
            (
                r"^infeasible \[time\]  conflict: lease L1 from 2026-12-07T07:30Z  <->"
                r"  3 open-ended servers$"
            ),
            (
                r"^relaxations \(each solved\): 1\. --until 2026-12-07T07:30Z   2\. --preemptible"
                r"   3\. start after 2026-12-11T18:00Z$"
            ),
        ),
        status=INFEASIBLE,
        remark="Until then others may use the hosts, if they end before it starts.",
    ),
    Step(
        "ensemble create --server edge:28vcpu --count 3 --until 2026-12-07T07:00Z",
        (r"held until 09:10:00Z  stays until 2026-12-07T07:00Z",),
    ),
    *_server(0),
    *_server(1),
    *_server(2),
    Step(
        "capacity window create --host n4 --down 2026-12-09T06:00Z/24h --dry-run",
        (
            (
                r"^409 ensemble\.would_break_lease: L1 \(needs 4 hosts one-per-host, 3 left\)"
                r"   earliest 24h window after 2026-12-08: 2026-12-11T18:00Z"
            ),
        ),
        status=CONFLICT,
        remark="Refused: maintenance in the lease, six on four hosts, a lease above the quota.",
    ),
    Step(
        f"offer create --template upf --param count=6 {_RANGE}",
        (
            r"^infeasible \[static\] .*one-per-host needs 6 hosts .*<->  hosts usable.*: 4$",
            r"1\. one-per-host max_per_domain 1->2   2\. upf count 6->4$",
        ),
        status=INFEASIBLE,
    ),
    Step(
        "lease create --template upf --param count=4 --start 2026-12-14T08:00Z"
        f" --end 2026-12-18T18:00Z --project {PROJECT}",
        (
            (
                r"^403 quota_exceeded lease-unit-hours limit 500 used 424 requested 424"
                r"   passes at 2027-01-10T18:00:00Z$"
            ),
        ),
        status=FORBIDDEN,
    ),
    _clock(
        "2026-12-07T07:00:00Z",
        "The lease is about to start: servers on its hosts are ended, and it starts.",
    ),
    Step("member list {id} -c member -c status", (r"\A(?!(?s:.*)active)",), patience=True),
    _clock("2026-12-07T07:30:00Z"),
    Step("lease show L1 -c status -c degraded", (r"^starting  false$",), patience=True),
    _clock("2026-12-07T08:00:00Z"),
    Step("lease show L1 -c status -c claimed", (r"^active  0/4$",), patience=True),
    Step(
        "sim fail --host n3",
        (r"^n3 is failed$",),
        remark="A host fails. The lease shows what would repair it.",
    ),
    Step(
        "lease show L1 -c degraded -c missing -c proposal",
        (
            (
                r'^true  1  "one-per-host max_per_domain 1->2 places the 4th on n4"'
                r" \(needs owner consent\)"
            ),
        ),
        patience=True,
    ),
    Step("sim stop", (rf"^stopped {EDGE_NAME}$",)),
)
"""Leases next month on hosts with devices, and what stands in the way."""
