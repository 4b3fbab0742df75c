"""Joint problems: terrain, problem, cost, counting, verification, and saved instances.

No solver lives here; see `moorage.solver`.
"""
