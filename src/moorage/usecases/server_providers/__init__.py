"""Server providers: what servers offer to slices, from its first description to its end (ADR-0037).

Where they are is found by `engine.state.server_locations`. Slices are not placed here, but by
`usecases.decide`.
"""
