"""Effects stored for later: timers of leases, notices, hooks and deletions of servers.

Here are only the changes that store them; `effect_dispatch` carries them out.
"""
