"""1.17: candidates by traits, and provider summaries show the traits."""

from moorage.api.placement.lowering import forgetting, in_entries, without
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.17",
    feature="candidates-required",
    queries={"candidates.list": forgetting("required")},
    lower={"candidates.list": in_entries("provider_summaries", lambda one: without(one, "traits"))},
)
