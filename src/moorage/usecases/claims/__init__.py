"""Claims of held places, their outcomes, confirmation, and the check of server requests.

Only `redecide` and `outcome.fail_and_redecide` search for a new place.
"""
