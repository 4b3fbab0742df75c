"""1.7: PUT of a resource class creates it, without a body; before, it gave it another name."""

from moorage.api.placement.resource_classes import rename
from moorage.api.placement.schemas import BODIES
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.7",
    feature="put-class-creates",
    instead={"resource_class.update": rename},
    schemas={"resource_class.update": lambda _: BODIES["resource_classes.create"]},
)
