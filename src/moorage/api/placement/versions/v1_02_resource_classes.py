"""1.2: resource classes as resources of their own."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.2",
    feature="resource-classes",
    routes=dict.fromkeys(
        (
            "resource_classes.list",
            "resource_classes.create",
            "resource_class.show",
            "resource_class.update",
            "resource_class.delete",
        ),
        404,
    ),
)
