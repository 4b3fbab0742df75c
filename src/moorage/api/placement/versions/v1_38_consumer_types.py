"""1.38: consumers have a type; usages are grouped by it.

Before, a write left the type alone, and usages were one sum over all types.
"""

from collections import Counter

from moorage.api.placement.lowering import (
    each_value,
    forgetting,
    hiding,
    in_each,
    of_property,
    on_body,
    without,
)
from moorage.http.microversion import JSON, Change

_untyped_schema = forgetting("consumer_type")


def _untyped(body: JSON) -> JSON:
    return {**body, "consumer_type": None}


def _reshaped_untyped(body: JSON) -> JSON:
    return {**body, "allocations": each_value(_untyped)(body["allocations"])}


def _one_sum(body: JSON) -> JSON:
    sums: Counter[str] = Counter()
    for usages in body["usages"].values():
        sums.update(without(usages, "consumer_count"))
    return {"usages": dict(sums)}


CHANGE = Change(
    since="1.38",
    feature="consumer-types",
    schemas={
        "allocations.replace": _untyped_schema,
        "allocations.write": in_each(_untyped_schema),
        "reshaper.reshape": of_property("allocations", in_each(_untyped_schema)),
    },
    queries={"usages.show": forgetting("consumer_type")},
    lift={
        "allocations.replace": _untyped,
        "allocations.write": each_value(_untyped),
        "reshaper.reshape": _reshaped_untyped,
    },
    lower={"allocations.show": hiding("consumer_type"), "usages.show": on_body(_one_sum)},
)
