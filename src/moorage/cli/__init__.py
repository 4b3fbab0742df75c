"""The command line: one file per noun, found by the table in `commands.py`.

Commands read arguments, call `moorage.client` and show what came back; nothing is decided here.
Only `serve`, `sim`, `demo` and `admin` may import the server side, and only while they run.
"""
