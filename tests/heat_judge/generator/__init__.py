"""Makes templates from seeds: every function, parameter, group and kind of environment."""

from tests.heat_judge.generator.cases import make

__all__ = ["make"]
