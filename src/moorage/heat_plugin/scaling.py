"""Autoscaling groups that ask before a signal changes their size.

A stack's update asks for the whole stack, its groups included: only `adjust` asks here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from heat.common import grouputils
from heat.engine import stack as heat_stack
from heat.engine.resources.aws.autoscaling import autoscaling_group as aws_group
from heat.engine.resources.openstack.heat import autoscaling_group as heat_group

from moorage.heat_plugin import options
from moorage.heat_plugin.group_size import LARGEST, ScaledGroup, ScalingRefused, ask, finish
from moorage.heat_plugin.native_api import NativeApi
from moorage.heat_plugin.stack_body import present_servers, seconds_of_hold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.heat_plugin.options import Settings

VICTIMS: Final = "moorage_victims"


class AskingGroup:
    """What is common to both kinds of groups, before Heat's own class."""

    _asks = False

    def adjust(self: Any, *given: object, **named: object) -> object:
        """As Heat's own, for a signal; the new size is asked for."""
        self._asks = True
        try:
            return super().adjust(*given, **named)  # type: ignore[misc]
        finally:
            self._asks = False

    def resize(self: Any, capacity: int) -> None:
        """As Heat's own, to what Moorage grants.

        Raises:
            ScalingRefused: the group may not have that size; it is unchanged.
        """
        if not self._asks:
            super().resize(capacity)  # type: ignore[misc]
            return
        settings = options.read()
        api = NativeApi(settings, self.context)
        try:
            granted = ask(settings, api, _scaled(self, settings), capacity)
        except ScalingRefused as refusal:
            self._add_event(self.action, self.status, str(refusal))
            raise
        if granted.told:
            self._add_event(self.action, self.status, granted.told)
        setattr(self, VICTIMS, _member_names(self, granted.victims))
        try:
            super().resize(granted.size)  # type: ignore[misc]
        finally:
            setattr(self, VICTIMS, frozenset())
        if told := finish(api, _scaled(self, settings), granted):
            self._add_event(self.action, self.status, told)


class AutoScalingResourceGroup(AskingGroup, heat_group.AutoScalingResourceGroup):  # type: ignore[misc]
    """`OS::Heat::AutoScalingGroup`."""


class AutoScalingGroup(AskingGroup, aws_group.AutoScalingGroup):  # type: ignore[misc]
    """`AWS::AutoScaling::AutoScalingGroup`."""


def install() -> None:
    """Make groups remove first whom Moorage chose; once.

    Heat removes members in the order of this list, the oldest first.
    """
    original = grouputils.get_member_definitions
    if hasattr(original, VICTIMS):
        return

    @functools.wraps(original)
    def ordered(group: Any, *given: object, **named: object) -> list[Any]:  # noqa: ANN401 - Heat's group
        victims: frozenset[str] = getattr(group, VICTIMS, frozenset())
        found: Iterable[Any] = original(group, *given, **named)
        return sorted(found, key=lambda one: one[0] not in victims)

    setattr(ordered, VICTIMS, True)
    grouputils.get_member_definitions = ordered


def _scaled(group: Any, settings: Settings) -> ScaledGroup:  # noqa: ANN401 - Heat's group
    stack = group.stack
    above = [name for name, _ in stack.path_in_stack() if name is not None]
    annotation = (group.t.metadata() or {}).get("moorage") or {}
    return ScaledGroup(
        root=stack.root_stack_id(),
        path="/".join([*above, group.name]),
        size=grouputils.get_size(group),
        servers=frozenset(id_ for _, id_ in _servers(group)),
        takes_less=annotation.get("scaling") == LARGEST,
        hold=seconds_of_hold(stack, settings.hold),
    )


def _servers(group: Any) -> tuple[tuple[str, str], ...]:  # noqa: ANN401 - Heat's group
    """Path in the group and id of each of its servers, as they are now."""
    if group.resource_id is None:
        return ()
    return tuple(present_servers(heat_stack.Stack.load(group.context, group.resource_id)))


def _member_names(group: Any, victims: frozenset[str]) -> frozenset[str]:  # noqa: ANN401 - Heat's group
    """The group's members that have a server which leaves."""
    found = _servers(group) if victims else ()
    return frozenset(path.split("/")[0] for path, id_ in found if id_ in victims)
