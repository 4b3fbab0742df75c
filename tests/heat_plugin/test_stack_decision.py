"""What stacks ask of a real Moorage over HTTP, and what becomes of its answers."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from wsgiref.simple_server import make_server

import pytest
from falcon.testing import TestClient
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from tests.heat_plugin.heat_objects import Context, Stack
from tests.nova_filter.test_hints import TENANT, TOKEN, Quiet

from moorage.heat_plugin.options import Settings
from moorage.heat_plugin.stack_decision import StackDecisions, StackRefused
from moorage.testing import in_process

ROOT = Path(__file__).parents[2]
THREE_RACKS = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
MODES = ("off", "annotated", "advise", "enforce")


def template(count: int, flavor: str = "m1.xlarge", **annotation: Any) -> dict[str, Any]:
    server = {"type": "OS::Nova::Server", "properties": {"flavor": flavor, "image": "i"}}
    group = {"type": "OS::Heat::ResourceGroup", "metadata": annotation}
    group["properties"] = {"count": count, "resource_def": server}
    return {"heat_template_version": "2021-04-16", "resources": {"web": group}}


@dataclass
class Cloud:
    """Moorage on loopback."""

    moorage: TestClient
    settings: Settings

    def stack(self, described: dict[str, Any]) -> Stack:
        stack = Stack("shop", {}, described)
        stack.context = Context(
            Session(
                Token(str(self.settings.endpoint), TOKEN),
                additional_headers={"X-Roles": "member"},
            )
        )
        return stack

    def decisions(self, **how: Any) -> StackDecisions:
        return StackDecisions(replace(self.settings, **how), pauses=(0.01,))

    def shown(self, stack: Stack) -> Any:
        """The stack as Moorage has it; None: it has none."""
        answer = self.moorage.simulate_get(f"/v1/stacks/{stack.id}", headers=TENANT)
        return None if answer.status_code == 404 else answer.json["stack"]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with (
        in_process.app(fleet=THREE_RACKS) as application,
        make_server("127.0.0.1", 0, application, handler_class=Quiet) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1"
        yield Cloud(TestClient(application), Settings("enforce", endpoint=endpoint))
        server.shutdown()
        thread.join()


def test_all_servers_are_held_before_the_stack_acts(cloud: Cloud) -> None:
    stack = cloud.stack(template(3))
    cloud.decisions().before(stack, "CREATE")
    shown = cloud.shown(stack)
    assert shown["ensemble"]["id"] == stack.id
    assert shown["keys"] == {f"web[{n}]": f"web/{n}" for n in range(3)}
    assert shown["decision"]["status"] == "held"
    (told,) = stack.events
    assert told.startswith("Moorage holds the places of 3 servers: decision ")


def test_a_refusal_is_the_stacks_reason(cloud: Cloud) -> None:
    stack = cloud.stack(template(500))
    with pytest.raises(StackRefused, match=r"^Moorage: .*web") as refused:
        cloud.decisions().before(stack, "CREATE")
    told = str(refused.value)
    assert "; see explanation " in told
    assert len(told) < 2_000
    assert cloud.shown(stack) is None
    assert stack.events == []


def test_an_update_changes_the_same_decision_and_a_rollback_gives_it_back(cloud: Cloud) -> None:
    stack, decisions = cloud.stack(template(2)), cloud.decisions()
    decisions.before(stack, "CREATE")
    stack.t.t = template(500)
    with pytest.raises(StackRefused):
        decisions.before(stack, "UPDATE")
    assert len(cloud.shown(stack)["keys"]) == 2, "nothing is changed"
    stack.t.t = template(4)
    decisions.before(stack, "UPDATE")
    assert len(cloud.shown(stack)["keys"]) == 4
    stack.t.t = template(2)
    decisions.before(stack, "ROLLBACK")
    assert len(cloud.shown(stack)["keys"]) == 2


def test_the_old_engine_says_what_the_stack_shall_be(cloud: Cloud) -> None:
    stack, new = cloud.stack(template(2)), cloud.stack(template(3))
    cloud.decisions().before(stack, "UPDATE", new)
    assert len(cloud.shown(stack)["keys"]) == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("annotation", [{}, {"moorage": {"policies": []}}])
def test_which_stacks_ask(cloud: Cloud, mode: str, annotation: Any) -> None:
    stack = cloud.stack(template(2, **annotation))
    cloud.decisions(stacks=mode).before(stack, "CREATE")
    asks = mode == "enforce" or (mode == "annotated" and annotation)
    assert (cloud.shown(stack) is not None) is bool(asks)
    assert bool(stack.events) is (bool(asks) or mode == "advise")


def test_advice_refuses_nothing(cloud: Cloud) -> None:
    stack = cloud.stack(template(500))
    cloud.decisions(stacks="advise").before(stack, "CREATE")
    (told,) = stack.events
    assert told.startswith("Moorage would refuse this: ")


def test_a_stack_without_its_annotation_is_forgotten(cloud: Cloud) -> None:
    stack = cloud.stack(template(2, moorage={"policies": []}))
    decisions = cloud.decisions(stacks="annotated")
    decisions.before(stack, "CREATE")
    stack.t.t = template(2)
    decisions.before(stack, "UPDATE")
    assert cloud.shown(stack) is None


@pytest.mark.parametrize("action", ["SUSPEND", "RESUME", "CHECK", "SNAPSHOT", "DELETE"])
def test_what_makes_no_server_does_not_ask(cloud: Cloud, action: str) -> None:
    stack = cloud.stack(template(2))
    cloud.decisions().before(stack, action)
    assert cloud.shown(stack) is None


def test_nested_stacks_do_not_ask(cloud: Cloud) -> None:
    stack = cloud.stack(template(2))
    stack.owner_id = "root"
    cloud.decisions().before(stack, "CREATE")
    cloud.decisions().after(stack, "CREATE", lambda: True)
    assert cloud.shown(stack) is None


@pytest.mark.parametrize("mode", ["refuse", "ordinary"])
def test_without_an_answer(cloud: Cloud, mode: str) -> None:
    decisions = cloud.decisions(failure_mode=mode, endpoint="http://127.0.0.1:9/v1")
    stack = cloud.stack(template(2))
    if mode == "refuse":
        with pytest.raises(StackRefused, match="does not answer"):
            decisions.before(stack, "CREATE")
    else:
        decisions.before(stack, "CREATE")
        assert stack.events == ["Moorage does not answer: Nova finds hosts one server at a time"]
    decisions.after(stack, "CREATE", lambda: True)
    decisions.after(stack, "DELETE", lambda: True)


def test_a_success_confirms_what_was_decided(cloud: Cloud) -> None:
    stack, decisions = cloud.stack(template(2)), cloud.decisions()
    decisions.before(stack, "CREATE")
    decisions.after(stack, "CREATE", lambda: False)
    assert cloud.shown(stack)["decision"]["status"] == "held", "the stack has begun an update"
    decisions.after(stack, "CREATE", lambda: True)
    decision = cloud.shown(stack)["decision"]
    assert decision is None or decision["status"] != "held"


@pytest.mark.parametrize("action", ["DELETE", "ROLLBACK"])
def test_a_stack_that_is_gone_is_forgotten(cloud: Cloud, action: str) -> None:
    """The rollback of a create leaves an empty template."""
    stack, decisions = cloud.stack(template(2)), cloud.decisions()
    decisions.before(stack, "CREATE")
    stack.t.t = {"heat_template_version": "2021-04-16"}
    decisions.before(stack, action)
    decisions.after(stack, action, lambda: True)
    assert cloud.shown(stack) is None
    decisions.after(stack, action, lambda: True)


def test_a_template_that_moorage_cannot_read_is_refused_with_the_place(cloud: Cloud) -> None:
    stack = cloud.stack(template(2))
    stack.t.t["resources"]["web"]["properties"]["count"] = {"get_param": "missing"}
    with pytest.raises(StackRefused, match="missing"):
        cloud.decisions().before(stack, "CREATE")


def test_a_deletion_is_told_where_stacks_are_only_advised_by_now(cloud: Cloud) -> None:
    stack = cloud.stack(template(2))
    cloud.decisions().before(stack, "CREATE")
    cloud.decisions(stacks="advise").after(stack, "DELETE", lambda: True)
    assert cloud.shown(stack) is None
