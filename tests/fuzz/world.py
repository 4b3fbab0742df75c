"""What the generator knows: ids it has used, and what our side says of them now.

Only guesses come from here, never a verdict: a wrong guess makes a request that is refused, and
both sides must refuse it alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

CLASSES: Final = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A", "CUSTOM_B")
TRAITS: Final = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "COMPUTE_NODE", "CUSTOM_T", "CUSTOM_U")
SHARING: Final = "MISC_SHARES_VIA_AGGREGATE"
OWNERS: Final = ("p1", "p2")
TYPES: Final = ("INSTANCE", "MIGRATION")
NEWEST: Final = 39


@dataclass
class World:
    """Ids by kind, and a way to look."""

    random: Random
    look: Callable[[str], Any]
    """The body of a GET at our side, at the newest version; None if there is none."""
    providers: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.aggregates = [self.uuid() for _ in range(3)]

    # --- choosing --------------------------------------------------------------------------

    def chance(self, part: float) -> bool:
        """True as often as said."""
        return self.random.random() < part

    def some(self, of: Sequence[str], at_most: int, *, at_least: int = 0) -> list[str]:
        """A few different ones, in any order."""
        most = min(at_most, len(of))
        return self.random.sample(list(of), self.random.randint(min(at_least, most), most))

    def uuid(self) -> str:
        """One that nobody has."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def new_provider(self) -> str:
        """The UUID of a provider to be made."""
        self.providers.append(self.uuid())
        return self.providers[-1]

    def provider(self) -> str:
        """Mostly one that is there, now and then one that was, or never was."""
        if not self.providers or self.chance(0.02):
            return self.uuid()
        chosen = self.random.sample(self.providers, min(3, len(self.providers)))
        there = (one for one in chosen if self.look(f"/resource_providers/{one}"))
        return chosen[0] if self.chance(0.05) else next(there, chosen[0])

    def consumer(self) -> str:
        """A new one or one that was used."""
        if not self.consumers or self.chance(0.35):
            self.consumers.append(self.uuid())
            return self.consumers[-1]
        return self.random.choice(self.consumers[-12:])

    def aggregate(self) -> str:
        """One of a few, now and then an unknown one."""
        return self.uuid() if self.chance(0.03) else self.random.choice(self.aggregates)

    def resource_class(self) -> str:
        """Mostly one that exists."""
        return "CUSTOM_NEVER_MADE" if self.chance(0.02) else self.random.choice(CLASSES)

    def trait(self) -> str:
        """Mostly one that exists."""
        return "CUSTOM_NEVER_MADE" if self.chance(0.01) else self.random.choice((*TRAITS, SHARING))

    # --- looking ---------------------------------------------------------------------------

    def generation(self, provider: str) -> int:
        """The provider's, now and then another."""
        found = self.look(f"/resource_providers/{provider}") or {"generation": 0}
        return int(found["generation"]) + (1 if self.chance(0.04) else 0)

    def consumer_generation(self, consumer: str) -> int | None:
        """The consumer's, now and then another."""
        if self.chance(0.05):
            return self.random.choice([None, 0, 1, 2, 7])
        found: int | None = self.look(f"/allocations/{consumer}").get("consumer_generation")
        return found

    def inventories(self, provider: str) -> dict[str, Any]:
        """By class."""
        found = self.look(f"/resource_providers/{provider}/inventories")
        return dict(found["inventories"]) if found else {}

    def allocations(self, consumer: str) -> dict[str, dict[str, int]]:
        """Amounts by provider."""
        found = self.look(f"/allocations/{consumer}")["allocations"]
        return {provider: one["resources"] for provider, one in found.items()}
