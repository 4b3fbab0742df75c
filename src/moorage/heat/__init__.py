"""Compiles Heat templates to ensemble descriptions, and reads YAML with line numbers.

It has the parameters, functions and resource types of templates, and the YAML reader that fleet and
ensemble files share. Pure: text and nested files are arguments, the result is a value or a typed
error. No file, socket or clock, and no placement.
"""
