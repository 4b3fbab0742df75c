"""The demonstration of leases: an operator's month on an edge site, as `demo_script` has others."""

from __future__ import annotations

from typing import Final

from moorage.cli.demo_script import NOW, Step
from moorage.cli.output import CONFLICT, FORBIDDEN, INFEASIBLE

NAME: Final = "edge"
PROJECT: Final = "nfv"
_RANGE: Final = "--earliest 2026-12-07T08:00Z --duration 4d10h"


def _server(number: int) -> tuple[Step, Step]:
    """A server that is created in one of the places held."""
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
        f"sim start --fleet edge.yaml --now {NOW} --name {NAME} --end-servers",
        (r"edge: 4 hosts, 2 domains",),
        remark="Four hosts with SR-IOV in two racks. An operator gives a project its share.",
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
        remark="Four packet functions, one per host, for five days next month: a promise.",
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
        remark="Until then others may have the hosts, if they end before it.",
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
        remark="Maintenance meets the lease; six are too many, ever; two leases are too much.",
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
    _clock("2026-12-07T07:00:00Z", "The day has come: the servers end, and the lease begins."),
    Step("member list {id} -c member -c status", (r"\A(?!(?s:.*)active)",), patience=True),
    _clock("2026-12-07T07:30:00Z"),
    Step("lease show L1 -c status -c degraded", (r"^starting  false$",), patience=True),
    _clock("2026-12-07T08:00:00Z"),
    Step("lease show L1 -c status -c claimed", (r"^active  0/4$",), patience=True),
    Step("sim fail --host n3", (r"^n3 is failed$",), remark="A host fails. What would help?"),
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
    Step("sim stop", (rf"^stopped {NAME}$",)),
)
"""Leases next month on hosts with devices, and what stands in the way."""
