"""What the demonstration runs, as data: commands, exit statuses, and what must be in the output.

`{id}` in a command is the ensemble's id, shortened as a person would, `{claim}` a claim's; they are
known from the commands that created them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from moorage.cli.output import CONFLICT, INFEASIBLE, OK

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
        remark="A shop in three tiers that survives a rack. First without a server: is it sound?",
    ),
    Step(
        "ensemble create -f shop.yaml --dry-run",
        (r"^verdict feasible \(computed at revision \d+\)   racks used 3   hosts used \d$",),
        remark="Would it fit? The same code as a real decision, and nothing is written.",
    ),
    Step(
        "ensemble create -f shop.yaml --hold 10m",
        (
            (
                r"^id [0-9a-f]{8}  decision [0-9a-f]{8} held until 09:10:00Z  policies 4/4"
                r"  max additional: web 5$"
            ),
        ),
        remark="All nine at once, or none; the places are held for ten minutes.",
    ),
    Step("ensemble show {id} --map", (r"r1.*r2.*r3", r"db\[")),
    Step(
        "sim replay shop.yaml --sequential --order web,app,db",
        (r'^FAIL at db\[1\]: proximity "pair" and survive "db-ha" leave no host$',),
        remark="The same shop on the same fleet, one server after the other: a dead end.",
    ),
    _claim("db[0]", "m1.xlarge", "Its servers are made one by one, each in the place held for it."),
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
        remark="A server that is not what was described does not get the place.",
    ),
    Step(
        "hot place shop-hot.yaml -e env.yaml --ensemble {id} --emit placed.yaml",
        (r"written to placed\.yaml",),
        remark="The same decision for Heat: a template in, the template with its decision out.",
    ),
    Step(
        "hot place placed.yaml --ensemble {id}",
        (r"db\[0\]",),
        remark="What was written is plain HOT, and means the same members by itself.",
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
        remark="Four databases that keep three cannot be had here. Why, and what would work:",
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
