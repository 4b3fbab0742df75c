"""A weigher for nova-scheduler: the host that was decided for a server comes first.

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        moorage.nova_filter.host_weigher.DecidedHostWeigher

It is needed where Moorage's setting `build_retries` gives a claim candidates on other hosts, on
which Nova may retry a failed build. Servers without a claim are not asked about, and weighed as by
Nova alone; so are servers that move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nova.scheduler import weights  # type: ignore[import-not-found]

from moorage.nova_filter.hints import CLAIM
from moorage.nova_filter.host_filter import candidate_hosts

if TYPE_CHECKING:
    from collections.abc import Sequence

MULTIPLIER: Final = 1_000_000.0
"""More than all weighers of Nova's together."""


class DecidedHostWeigher(weights.BaseHostWeigher):  # type: ignore[misc]
    """Weighs the host of a claim's place 1, and all others 0."""

    minval = 0.0
    maxval = 1.0

    def weight_multiplier(self, _host_state: Any) -> float:  # noqa: ANN401 - Nova's object
        """How much it counts."""
        return MULTIPLIER

    def _weigh_object(self, _host_state: Any, _weight_properties: Any) -> float:  # noqa: ANN401 - Nova's objects
        """The weight of a host of which nothing is known."""
        return 0.0

    def weigh_objects(self, weighed_obj_list: Sequence[Any], weight_properties: Any) -> list[float]:  # noqa: ANN401 - Nova's objects
        """The weights of all hosts, in their order."""
        hosts = [one.obj.uuid for one in weighed_obj_list]
        claim = weight_properties.get_scheduler_hint(CLAIM)
        presented = weight_properties._context.global_id  # noqa: SLF001 - how Nova's filters get it
        if not claim or len(hosts) == 1 or presented != f"req-{claim}":
            return [0.0] * len(hosts)
        decided = candidate_hosts(weight_properties, 1)
        return [float(one in decided) for one in hosts]
