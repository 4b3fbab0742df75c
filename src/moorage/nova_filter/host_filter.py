"""A filter for nova-scheduler: servers that name a held place get no other host.

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = moorage.nova_filter.host_filter.HeldPlaceFilter
    enabled_filters = ComputeFilter,...,HeldPlaceFilter

A safety net: where Moorage is Nova's Placement, candidates are on the right hosts already. Whatever
else gives the scheduler hosts, this asks Moorage for the candidates of the request once more, with
the same request id, and refuses all other hosts. A new server with the hint `moorage` that comes
without a claim gets no host: nova-api's filter, which claims its place, has not seen it. Servers
without the hint pass unasked.

    [moorage]
    # Moorage's Placement API; by default Nova's own Placement, with the login of [placement]
    placement_endpoint = http://controller:8778/placement
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from keystoneauth1 import exceptions
from nova import conf, exception, objects, utils  # type: ignore[import-not-found]
from nova.scheduler import filters  # type: ignore[import-not-found]
from nova.scheduler import utils as scheduler_utils
from oslo_config import cfg

from moorage.nova_filter.hints import CLAIM, HINT

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = "1.36"
"""The microversion of Placement that nova-scheduler uses."""
OPTION: Final = cfg.StrOpt("placement_endpoint", help="Moorage's Placement API.")
OK: Final = 200

conf.CONF.register_opts([OPTION], group="moorage")
_log = logging.getLogger(__name__)


class HeldPlaceFilter(filters.BaseHostFilter):  # type: ignore[misc]
    """Refuses hosts on which the server's held place is not."""

    RUN_ON_REBUILD = False

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any]:  # noqa: ANN401 - Nova's objects
        """The hosts that are among Moorage's candidates of the request."""
        hosts = list(filter_obj_list)
        if not spec_obj.get_scheduler_hint(HINT) or scheduler_utils.request_is_rebuild(spec_obj):
            return hosts
        if not spec_obj.get_scheduler_hint(CLAIM) and _is_new(spec_obj):
            _log.warning(
                "server %s has the hint moorage=%s and no claim of its place, so it gets no host:"
                " is Moorage's filter in the pipeline of nova-api that took the request?",
                spec_obj.instance_uuid,
                spec_obj.get_scheduler_hint(HINT),
            )
            return []
        allowed = candidate_hosts(spec_obj)
        return [one for one in hosts if one.uuid in allowed]


def _is_new(spec: Any) -> bool:  # noqa: ANN401 - Nova's RequestSpec
    """Whether the server is in no cell yet: it was never scheduled.

    Of servers that exist, those that are older than the hint of the claim have none.
    """
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            spec._context.elevated(),  # noqa: SLF001 - how Nova's filters get it
            spec.instance_uuid,
        )
    except exception.InstanceMappingNotFound:
        return True
    return mapping.cell_mapping is None


@cache
def _placement() -> Any:  # noqa: ANN401 - keystoneauth's adapter
    """With one login for all servers."""
    return utils.get_ksa_adapter("placement")


def candidate_hosts(spec: Any, most: int | None = None) -> frozenset[str]:  # noqa: ANN401 - Nova's RequestSpec
    """UUIDs of the hosts of the request's first candidates, as many as there are or `most`.

    None if Moorage does not answer. That of a presented claim's place is the first.
    """
    request = scheduler_utils.ResourceRequest.from_request_spec(spec)
    # Nova's limit may cut off the very hosts that the scheduler was given.
    request._limit = most  # noqa: SLF001 - as Nova's own code unsets it
    placement = _placement()
    try:
        answer = placement.get(
            f"/allocation_candidates?{request.to_querystring()}",
            endpoint_override=conf.CONF.moorage.placement_endpoint or placement.endpoint_override,
            microversion=VERSION,
            global_request_id=spec._context.global_id,  # noqa: SLF001 - how Nova's filters get it
        )
    except exceptions.ClientException as error:
        _log.warning("Moorage does not answer for the server's candidates: %s", error)
        return frozenset()
    if answer.status_code != OK:
        _log.warning("Moorage answers %s for the server's candidates", answer.status_code)
        return frozenset()
    summaries = answer.json()["provider_summaries"]
    return frozenset(one["root_provider_uuid"] for one in summaries.values())
