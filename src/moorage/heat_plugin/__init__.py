"""A plug-in for heat-engine: a stack asks for the places of all its servers before it acts.

    [DEFAULT]
    stack_scheduler_hints = true
    plugin_dirs = /usr/lib/python3/dist-packages/moorage/heat_plugin/resource_types

    [moorage]
    # which stacks ask: off, annotated, advise, enforce
    stacks = enforce
    # without an answer: refuse or ordinary
    failure_mode = refuse

Heat finds it by the entry point `heat.stack_lifecycle_plugins`. Before a root stack is created,
updated, adopted or rolled back, its template goes to Moorage, with the servers that it has: one
decision for the whole tree, under the stack's id. A refusal fails the stack before any resource
exists. Each server then names its stack and its path in it by Heat's own scheduler hints, and the
filter in nova-api (`moorage.nova_filter`) takes the place that was decided for it.

`stack_body`, `native_api` and `stack_decision` know Heat's stacks by their attributes alone and are
tested without Heat; `engine`, `lifecycle`, `scaling` and `resource_types` are Heat's subclasses.
Nothing else of Moorage is imported.
"""
