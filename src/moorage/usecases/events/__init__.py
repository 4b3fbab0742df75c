"""Events: read by cursor, or delivered to subscribers; thresholds of subscriptions.

What an event means is derived from changes in `domain.happened`, not here.
"""
