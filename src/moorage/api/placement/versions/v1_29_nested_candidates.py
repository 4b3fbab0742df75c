"""1.29: candidates may take from several providers of a tree; summaries show parent and root.

Before, no candidate did, and only the providers used were summarised.
"""

from moorage.api.placement.lowering import in_entries, without
from moorage.http.microversion import JSON, Change


def _flat(summary: JSON) -> JSON:
    return without(summary, "parent_provider_uuid", "root_provider_uuid")


CHANGE = Change(
    since="1.29",
    feature="nested-candidates",
    lower={"candidates.list": in_entries("provider_summaries", _flat)},
)
