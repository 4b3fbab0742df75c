"""1.6: traits, traits of providers, and the link to them."""

from moorage.api.placement.lowering import hiding_link
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.6",
    feature="traits",
    routes=dict.fromkeys(
        (
            "traits.list",
            "trait.show",
            "trait.update",
            "trait.delete",
            "provider_traits.list",
            "provider_traits.replace",
            "provider_traits.clear",
        ),
        404,
    ),
    lower=hiding_link("traits"),
)
