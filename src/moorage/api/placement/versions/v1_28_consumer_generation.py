"""1.28: consumers have a generation, and PUT of no allocations clears a consumer."""

from moorage.api.placement.lowering import (
    each_value,
    forgetting,
    hiding,
    in_each,
    in_entries,
    without,
)
from moorage.domain.consumers import ANY_GENERATION
from moorage.http.microversion import JSON, Change


def _not_empty(schema: JSON) -> JSON:
    schema = forgetting("consumer_generation")(schema)
    allocations = {**schema["properties"]["allocations"], "minProperties": 1}
    return {**schema, "properties": {**schema["properties"], "allocations": allocations}}


def _of_any_generation(body: JSON) -> JSON:
    return {**body, "consumer_generation": ANY_GENERATION}


CHANGE = Change(
    since="1.28",
    feature="consumer-generation",
    schemas={
        "allocations.replace": _not_empty,
        "allocations.write": in_each(forgetting("consumer_generation")),
    },
    lift={
        "allocations.replace": _of_any_generation,
        "allocations.write": each_value(_of_any_generation),
    },
    lower={
        "allocations.show": hiding("consumer_generation"),
        "provider_allocations.list": in_entries(
            "allocations", lambda one: without(one, "consumer_generation")
        ),
    },
)
