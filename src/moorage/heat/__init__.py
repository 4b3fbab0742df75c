"""Heat templates in, ensemble descriptions out; and YAML text that remembers its lines.

Here lives what reads text: parameters, functions, the resource types of a template, and the
reader underneath that fleet and ensemble files share. Pure: text and nested files arrive as
strings, values or a typed error leave. No file, socket or clock, and no placing: the solver
never sees a template.
"""
