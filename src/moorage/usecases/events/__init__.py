"""Events: read by cursor, or delivered to subscribers; thresholds of subscriptions.

Events are derived from changes in `domain.happened`, not here.
"""
