"""1.27: provider summaries show every class of a provider; before, only those asked for."""

from collections.abc import Iterator

from moorage.api.placement.lowering import on_body
from moorage.http.microversion import JSON, Change


def _asked(candidates: JSON) -> Iterator[str]:
    """Every candidate takes every class asked for. They are shown by provider here, or listed."""
    for candidate in candidates[:1]:
        for given in candidate["allocations"].values():
            yield from given["resources"]


def _asked_only(body: JSON) -> JSON:
    asked = set(_asked(body["allocation_requests"]))
    summaries = {
        uuid: {
            **one,
            "resources": {name: use for name, use in one["resources"].items() if name in asked},
        }
        for uuid, one in body["provider_summaries"].items()
    }
    return {**body, "provider_summaries": summaries}


CHANGE = Change(
    since="1.27",
    feature="all-classes-in-summaries",
    lower={"candidates.list": on_body(_asked_only)},
)
