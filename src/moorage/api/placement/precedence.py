"""The order of checks for a refused write on a provider.

The reference looks at the provider and its generation before it judges what is asked. A commit
judges all of that under its locks anyway; so writes go straight to it, and only a refused one
reads the provider, to report the errors in the reference's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import ProviderConflict
from moorage.usecases.ledger import providers as usecase

if TYPE_CHECKING:
    from moorage.api.placement.request import Environment, Request


def refuse_first(env: Environment, request: Request) -> None:
    """Raise the first error in the reference's order, if the provider has one.

    Raises:
        NotFound: there is no such provider.
        InvalidDescription: the body is no JSON, or not what the schema asks.
        ProviderConflict: the body names another generation than the provider's.
    """
    provider = usecase.find_provider(env.store, request.path["uuid"])
    expected = request.json()["resource_provider_generation"]
    if expected is not None and expected != provider.generation:
        raise ProviderConflict(
            "Generation conflict: re-read the provider and retry.", subject=provider.uuid
        )
