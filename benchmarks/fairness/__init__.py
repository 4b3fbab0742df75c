"""One tenant's latency while another one attacks: `python -m benchmarks.fairness`."""
