"""1.14: providers form trees: parent and root are shown, taken and listed by."""

from moorage.api.placement.lowering import forgetting, on_providers, without
from moorage.http.microversion import JSON, Change


def _flat(provider: JSON) -> JSON:
    return without(provider, "parent_provider_uuid", "root_provider_uuid")


CHANGE = Change(
    since="1.14",
    feature="nested-providers",
    schemas={
        "providers.create": forgetting("parent_provider_uuid"),
        "providers.update": forgetting("parent_provider_uuid"),
    },
    queries={"providers.list": forgetting("in_tree")},
    lower=on_providers(_flat),
)
