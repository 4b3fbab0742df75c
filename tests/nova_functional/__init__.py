"""Nova's own functional tests, with Moorage as their Placement and with the reference."""
