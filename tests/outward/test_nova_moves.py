"""Nova as a small real server: what a move asks of it, and what its answers mean."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.outward.conftest import Answer, Request
from tests.outward.test_nova import Cloud, running, section

from moorage.domain.period import MINUTE, parse_instant
from moorage.domain.plan_progress import MoveProgress
from moorage.domain.plans import Move, MoveKind
from moorage.outward.nova_moves import NovaMover
from moorage.usecases.plan_ports import MoveRefused, MoverUnreachable

SERVER = "5a0e0000-0000-4000-8000-000000000001"
BEGAN = parse_instant("2026-12-01T09:00:00Z")
MOVE = Move(
    id="5a0e0000-0000-4000-8000-0000000000aa",
    server=SERVER,
    project_id="p",
    source="s",
    source_name="c1.example",
    target="t",
    target_name="c2.example",
    allocations={},
    began_at=BEGAN,
)


@dataclass
class Compute(Cloud):
    """A compute API with one server, whose moves are told what to answer."""

    server: dict[str, Any] | None = field(
        default_factory=lambda: {
            "status": "ACTIVE",
            "OS-EXT-STS:task_state": None,
            "OS-EXT-SRV-ATTR:hypervisor_hostname": "c1.example",
        }
    )
    migrations: list[dict[str, Any]] = field(default_factory=list)
    action: Answer = field(default_factory=lambda: Answer(202))

    def answer(self, request: Request) -> Answer:
        if request.path.startswith("/identity") or self.status is not None:
            return super().answer(request)
        self.made.append(request)
        path = request.path.removeprefix("/compute")
        if path.startswith("/os-hypervisors"):
            names = {"c1": "c1.example", "c2": "c2.example", "c2x": "c2.example.org"}
            found = [
                {"hypervisor_hostname": name, "service": {"host": host}}
                for host, name in names.items()
            ]
            return Answer(200, json.dumps({"hypervisors": found}).encode())
        if path.startswith("/os-migrations"):
            return Answer(200, json.dumps({"migrations": self.migrations}).encode())
        if path.endswith("/action"):
            return self.action
        if self.server is None:
            return Answer(404, b'{"itemNotFound": {"code": 404, "message": "no such server"}}')
        return Answer(200, json.dumps({"server": self.server}).encode())

    def migration(self, status: str, **more: str) -> None:
        one = {"status": status, "dest_node": "c2.example", "created_at": "2026-12-01T09:00:01"}
        self.migrations.append(one | more)


def report(cloud: Compute, move: Move = MOVE) -> tuple[MoveProgress, str]:
    with running(cloud):
        found = NovaMover(section(cloud), 10).report(move)
    return found.progress, found.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MoveKind.LIVE, {"os-migrateLive": {"host": "c2", "block_migration": "auto"}}),
        (MoveKind.COLD, {"migrate": {"host": "c2"}}),
        (MoveKind.EVACUATE, {"evacuate": {"host": "c2"}}),
    ],
)
def test_a_move_names_its_target_and_its_server_and_forces_nothing(
    kind: MoveKind, body: dict[str, Any]
) -> None:
    cloud = Compute(set())
    with running(cloud):
        NovaMover(section(cloud), 10).begin(replace(MOVE, kind=kind))
    request = cloud.made[-1]
    assert request.path == f"/compute/servers/{SERVER}/action"
    assert json.loads(request.body) == body
    assert request.headers["x-openstack-request-id"] == f"req-{SERVER}"
    assert request.headers["openstack-api-version"] == "compute 2.68"


def test_a_target_that_nova_does_not_know_is_refused() -> None:
    cloud = Compute(set())
    with running(cloud), pytest.raises(MoveRefused, match=r"no hypervisor c3\.example"):
        NovaMover(section(cloud), 10).begin(replace(MOVE, target_name="c3.example"))


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, MoveRefused), (409, MoveRefused), (500, MoverUnreachable), (503, MoverUnreachable)],
)
def test_a_refusal_is_told_from_a_failure(status: int, error: type[Exception]) -> None:
    fault = b'{"fault": {"code": 1, "message": "the instance is locked"}}'
    cloud = Compute(set(), action=Answer(status, fault))
    with running(cloud), pytest.raises(error, match="the instance is locked"):
        NovaMover(section(cloud), 10).begin(MOVE)


def test_a_nova_that_does_not_answer_may_have_begun() -> None:
    cloud = Compute(set(), status=503)
    with running(cloud), pytest.raises(MoverUnreachable):
        NovaMover(section(cloud), 10).report(MOVE)
    with pytest.raises(MoverUnreachable):
        NovaMover(section(cloud), 10).begin(MOVE)  # nobody listens any more


def test_a_server_on_its_target_is_done_when_its_migration_is() -> None:
    cloud = Compute(set())
    assert cloud.server is not None
    cloud.server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = "c2.example"
    cloud.migration("post-migrating")
    assert report(cloud) == (MoveProgress.RUNNING, "post-migrating")
    cloud.migrations[0]["status"] = "completed"
    assert report(cloud)[0] is MoveProgress.DONE


@pytest.mark.parametrize("status", ["error", "failed", "cancelled"])
def test_a_migration_that_nova_gives_up_has_failed(status: str) -> None:
    cloud = Compute(set())
    cloud.migration("completed", created_at="2026-12-01T08:00:00", dest_node="c9")
    cloud.migration(status)
    assert report(cloud) == (MoveProgress.FAILED, f"Nova's migration ended as {status}")
    asked = next(one.path for one in cloud.made if "os-migrations" in one.path)
    assert f"instance_uuid={SERVER}" in asked
    assert "changes-since=2026-12-01T08%3A59%3A00Z" in asked


def test_only_a_migration_to_the_target_is_of_the_move() -> None:
    cloud = Compute(set())
    cloud.migration("error", dest_node="c9")
    assert report(cloud)[0] is MoveProgress.IDLE


def test_a_cold_migration_is_confirmed() -> None:
    cloud = Compute(set(), action=Answer(204))
    assert cloud.server is not None
    cloud.server["status"] = "VERIFY_RESIZE"
    cloud.migration("finished", migration_type="migration")
    assert report(cloud, replace(MOVE, kind=MoveKind.COLD))[0] is MoveProgress.RUNNING
    assert json.loads(cloud.made[-1].body) == {"confirmResize": None}


def test_a_resize_by_its_owner_is_not_confirmed() -> None:
    cloud = Compute(set(), action=Answer(204))
    assert cloud.server is not None
    cloud.server["status"] = "VERIFY_RESIZE"
    cloud.migration("finished", migration_type="resize")
    for kind in MoveKind:
        assert report(cloud, replace(MOVE, kind=kind))[0] is MoveProgress.FAILED
    assert not [one for one in cloud.made if one.method == "POST" and "servers" in one.path]


def test_a_stopped_server_is_moved_cold() -> None:
    cloud = Compute(set())
    assert cloud.server is not None
    cloud.server["status"] = "SHUTOFF"
    with running(cloud):
        NovaMover(section(cloud), 10).begin(MOVE)
    assert json.loads(cloud.made[-1].body) == {"migrate": {"host": "c2"}}


def test_what_happens_to_the_server_itself_is_reported() -> None:
    cloud = Compute(set())
    assert report(cloud)[0] is MoveProgress.IDLE
    assert cloud.server is not None
    cloud.server["OS-EXT-STS:task_state"] = "migrating"
    assert report(cloud) == (MoveProgress.RUNNING, "migrating")
    cloud.server["OS-EXT-STS:task_state"] = None
    cloud.server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = "c7.example"
    assert report(cloud) == (MoveProgress.FAILED, "the server is on c7.example by now")
    cloud.server |= {"status": "ERROR", "fault": {"message": "no valid host"}}
    assert report(cloud) == (MoveProgress.FAILED, "the server is in error: no valid host")
    cloud.server = None
    assert report(cloud)[0] is MoveProgress.GONE


def test_a_request_that_was_not_answered_is_waited_for() -> None:
    assert NovaMover(section(Compute(set(), url="http://127.0.0.1:9")), 10).patience >= MINUTE
