"""The bodies of the native API as msgspec structs, which the service and its clients share.

One module per noun, with the bodies of its requests and of its answers. Types and bounds are here;
meaning is judged by `domain` and above. Answers carry what the service says; fields that a caller
may not see are unset. Nothing here does anything: no function, no I/O.
"""
