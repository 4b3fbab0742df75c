"""Moorage's Placement beside the reference's, in the same run: `python -m benchmarks.placement`."""
