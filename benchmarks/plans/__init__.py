"""Plans of moves, measured: drains, repairs, room for newcomers, cycles.

Instances with planted answers, and a checker that shares nothing with the engine. Run with
`python -m benchmarks.plans`.
"""
