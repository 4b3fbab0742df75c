"""1.19: aggregates come with the provider's generation, are judged by it and move it.

Before, PUT took a bare list and neither checked nor moved the generation.
"""

from moorage.api.placement.lowering import hiding
from moorage.api.placement.schemas import AGGREGATES
from moorage.http.microversion import JSON, Change


def _with_no_generation(aggregates: JSON) -> JSON:
    return {"aggregates": aggregates, "resource_provider_generation": None}


CHANGE = Change(
    since="1.19",
    feature="aggregates-generation",
    schemas={"aggregates.replace": lambda _: AGGREGATES},
    lift={"aggregates.replace": _with_no_generation},
    lower={
        "aggregates.show": hiding("resource_provider_generation"),
        "aggregates.replace": hiding("resource_provider_generation"),
    },
)
