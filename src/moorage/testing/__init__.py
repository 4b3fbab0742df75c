"""What tests, benchmarks and plug-ins build with: hand-made terrains, random problems, clients.

Shipped, so that a plug-in's tests can use it; imported by nothing that serves.
"""
