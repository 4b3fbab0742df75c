"""Which of several refusals a write on a provider is told.

The reference looks at the provider and its generation before it judges what is asked. A commit
judges all of that under its locks anyway; so writes go straight to it, and only one that was
refused looks at the provider, to say first what the reference says first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import ProviderConflict
from moorage.usecases import providers as usecase

if TYPE_CHECKING:
    from moorage.api.placement.request import Parts, Request


def refuse_first(parts: Parts, request: Request) -> None:
    """Return if there is nothing wrong with the provider of a refused write.

    Raises:
        NotFound: there is no such provider.
        InvalidDescription: the body is no JSON, or not what the schema asks.
        ProviderConflict: the body names another generation than the provider's.
    """
    provider = usecase.one(parts.store, request.path["uuid"])
    expected = request.json()["resource_provider_generation"]
    if expected is not None and expected != provider.generation:
        raise ProviderConflict("the provider's generation is another one", subject=provider.uuid)
