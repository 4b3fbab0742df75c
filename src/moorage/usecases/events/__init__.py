"""Events: read by cursor, or delivered to subscribers; thresholds of subscriptions.

Events are derived from changes in `domain.derived_events`, not here.
"""
