"""The grammar of what an owner wants done at the edges of a lease."""

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.lease_actions import (
    MAX_ACTIONS,
    Action,
    ActionKind,
    Edge,
    actions_at,
    read_action,
    read_actions,
)
from moorage.domain.period import DAY, HOUR, MINUTE


@pytest.mark.parametrize(
    ("text", "edge", "action"),
    [
        ("notify", Edge.ON_START, Action(ActionKind.NOTIFY)),
        ("notify:PT24H", Edge.ON_END, Action(ActionKind.NOTIFY, DAY)),
        ("notify", Edge.BEFORE_END, Action(ActionKind.NOTIFY, HOUR)),
        ("release:10m", Edge.BEFORE_END, Action(ActionKind.RELEASE, 10 * MINUTE)),
        ("delete", Edge.ON_END, Action(ActionKind.DELETE)),
        ("hook:grow-cluster", Edge.ON_START, Action(ActionKind.HOOK, 0, "grow-cluster")),
        ("hook:save:30m", Edge.BEFORE_END, Action(ActionKind.HOOK, 30 * MINUTE, "save")),
    ],
)
def test_an_action_is_read_and_written_alike(text: str, edge: Edge, action: Action) -> None:
    assert read_action(text, edge) == action
    assert read_action(str(action), edge) == action


@pytest.mark.parametrize(
    ("text", "edge", "words"),
    [
        ("explode", Edge.ON_END, "no such action"),
        ("", Edge.ON_END, "no such action"),
        ("hook", Edge.ON_END, "a hook has a name"),
        ("hook:", Edge.ON_END, "a hook has a name"),
        ("hook:../x", Edge.ON_END, "a hook has a name"),
        ("hook:" + "x" * 65, Edge.ON_END, "a hook has a name"),
        ("notify:soon", Edge.ON_END, "not a duration"),
        ("notify:1h:2h", Edge.ON_END, "not an action"),
        ("notify:-1h", Edge.ON_END, "not a duration"),
        ("release", Edge.ON_START, "means nothing at a lease's start"),
        ("delete:1h", Edge.ON_START, "means nothing at a lease's start"),
    ],
)
def test_what_is_no_action_is_refused(text: str, edge: Edge, words: str) -> None:
    with pytest.raises(InvalidDescription, match=words) as caught:
        read_action(text, edge)
    assert caught.value.path == f"lease.actions.{edge}"


def test_the_actions_of_a_lease_are_checked_edge_by_edge() -> None:
    checked = read_actions(
        {"on_start": ["notify", "notify"], "before_end": ["notify", "hook:save"], "on_end": []}
    )
    assert checked == {
        "on_start": ("notify",),
        "before_end": ("notify:PT1H", "hook:save:PT1H"),
    }
    assert read_actions(checked) == checked
    assert actions_at(checked, Edge.ON_END) == ()
    assert actions_at(checked, Edge.ON_START) == (Action(ActionKind.NOTIFY),)


@pytest.mark.parametrize(
    ("actions", "path"),
    [
        ({"at_noon": ["notify"]}, "lease.actions"),
        ({"on_end": "notify"}, "lease.actions.on_end"),
        ({"on_end": 3}, "lease.actions.on_end"),
        ({"on_end": [3]}, "lease.actions.on_end"),
        ({"on_end": ["notify"] * (MAX_ACTIONS + 1)}, "lease.actions.on_end"),
    ],
)
def test_what_are_no_actions_is_refused(actions: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        read_actions(actions)
    assert caught.value.path == path
