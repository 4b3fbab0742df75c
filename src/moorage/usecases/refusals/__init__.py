"""Why a request is refused, and what would be granted instead: the reasons and the alternatives.

Only explanations are written here; nothing else.
"""
