"""Requests to Placement for generated flavors and images: ours beside Nova's own."""
