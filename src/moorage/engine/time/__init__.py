"""Step functions of time as columns: sums, peaks and levels.

Nothing here knows a provider or a request.
"""
