"""The mix of requests that decisions weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client.resource import Answer, Resource
from moorage.heat.yaml_tree import parse
from moorage.wire.request_mix import RequestMix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.heat.yaml_tree import YamlNode


def read_mix(text: str) -> list[dict[str, Any]]:
    """The shapes of a mix that is written in YAML or JSON, as `RequestMixCalls.state` takes them.

    The answer of `show` can be read as well.

    Raises:
        InvalidDescription: not YAML, or no list `shapes` of objects; with the line.
    """
    top = parse(text)
    if isinstance(top.value, dict) and "request_mix" in top.value:
        top = top.value["request_mix"]
    shapes = top.value.get("shapes") if isinstance(top.value, dict) else None
    if shapes is None or not isinstance(shapes.value, list):
        raise top.invalid("a mix is a list `shapes`")
    return [_shape(one) for one in shapes.value]


def _shape(node: YamlNode) -> dict[str, Any]:
    if not isinstance(node.value, dict):
        raise node.invalid("a shape has a weight, and a flavor or resources")
    # Which flavors had the shape is only shown.
    return {name: one.plain() for name, one in node.value.items() if name != "flavors"}


class RequestMixCalls(Resource):
    """`/v1/request-mix`."""

    path, one = "/v1/request-mix", "request_mix"

    def show(self) -> Answer[RequestMix]:
        """The mix in use."""
        return self._get(RequestMix)

    def state(
        self, shapes: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> Answer[RequestMix]:
        """State the mix."""
        body = {"request_mix": {"shapes": shapes}}
        return self._send("PUT", "", body, RequestMix, "request_mix", dry_run=dry_run)

    def reset(self) -> None:
        """Let it be counted from the ledger."""
        self._delete("")
