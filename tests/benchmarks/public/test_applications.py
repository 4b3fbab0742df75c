"""Applications with and without GPUs: read from a file of the published format, or made."""

from pathlib import Path

import pytest
from benchmarks.joint.checker import faults
from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.joint.weighers import Packing
from benchmarks.public.applications import (
    CPU_HOSTS,
    GPU_HOSTS,
    Application,
    Shape,
    applications,
    fleet_for,
    made,
    peak,
    read,
    request_of,
)

HEAD = (
    "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,max_instance_per_node,"
    "creation_time,scheduled_time,deletion_time"
)
PLAIN = Shape(gpu_host=False, vcpu=64, memory=320 * 1024, gpus=0, most=0)
LIMITED = Shape(gpu_host=False, vcpu=48, memory=240 * 1024, gpus=0, most=2)
GPU = Shape(gpu_host=True, vcpu=8, memory=40 * 1024, gpus=1, most=2)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One application grows to three instances, another ends before."""
    file = tmp_path / "trace.csv"
    rows = (
        "i0,CN,app_0,64,0,320.0,-1,,,",
        "i1,HN,app_0,8,1,40.0,2,,,",
        "i2,HN,app_0,8,1,40.0,2,90.0,100.0,200.0",
        "i3,CN,app_1,64,0,320.0,-1,,,100.0",
    )
    file.write_text("\n".join((HEAD, *rows)) + "\n", encoding="utf-8")
    return file


def test_a_trace_is_read_and_its_peak_found(trace: Path) -> None:
    found = read(trace)
    assert [one.shape for one in found] == [PLAIN, GPU, GPU, PLAIN]
    assert (found[2].since, found[2].until) == (100.0, 200.0)
    # What ends at an instant is gone before what begins at it: never four at once.
    assert peak(found) == [
        Application("app_0", ((PLAIN, 1), (GPU, 1))),
        Application("app_1", ((PLAIN, 1),)),
    ]
    assert peak(found[:3]) == [Application("app_0", ((PLAIN, 1), (GPU, 2)))]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("i0,XN,app_0,64,0,320.0,-1,,,", "line 2"),
        ("i0,CN,app_0,many,0,320.0,-1,,,", "line 2.*many"),
        ("i0,CN,app_0", "line 2"),
    ],
)
def test_a_row_of_another_form_is_refused(trace: Path, row: str, said: str) -> None:
    trace.write_text(f"{HEAD}\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        read(trace)


def test_a_file_without_a_column_is_refused(trace: Path) -> None:
    trace.write_text("role,app_name\nCN,app_0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"trace.csv lacks the columns cpu_request, .*"):
        read(trace)


def test_the_fleet_has_what_each_kind_needs_at_the_load() -> None:
    asked = [Application("a", ((PLAIN, 9), (GPU, 12)))]
    whole, half = fleet_for(asked, 1.0), fleet_for(asked, 0.5)
    assert sorted(map(tuple, whole.capacity.tolist())) == [GPU_HOSTS] * 2 + [CPU_HOSTS] * 3
    assert sorted(map(tuple, half.capacity.tolist())) == [GPU_HOSTS] * 3 + [CPU_HOSTS] * 6


def test_limits_are_among_instances_of_one_role_and_limit() -> None:
    other = GPU._replace(memory=16 * 1024)
    application = Application("a", ((PLAIN, 2), (LIMITED, 3), (GPU, 3), (other, 1)))
    request = request_of(application, barred=True)
    said = {one.name: (len(one.members), dict(one.parameters)) for one in request.policies}
    assert said == {
        "most-shape1": (1, {"max_per_domain": 2}),
        "most-shape2": (2, {"max_per_domain": 2}),
    }
    fleet = fleet_for([application], 0.3)
    hosts = Scheduler(ideal=True, weigher=Packing, name="packing").place(fleet, request)
    assert hosts is not None
    assert faults(fleet, request, hosts) == []
    on_gpu_hosts = {member.role for member, row in hosts.items() if fleet.capacity[row, 2]}
    assert on_gpu_hosts == {"shape2", "shape3"}


def test_made_applications_are_the_same_for_a_seed_and_resemble_the_trace() -> None:
    found = made(1)
    assert found == made(1)
    assert found != made(2)
    asked = applications(found)
    assert len(asked) == 40
    with_gpus = sum(one.shape.gpu_host for one in found)
    assert 0.3 < with_gpus / len(found) < 0.45
    assert all(one.since < one.until for one in found)
    assert len(peak(found)) > 30
