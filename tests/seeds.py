"""How many random cases a test judges: fewer at every push than at night.

`MOORAGE_HYPOTHESIS=nightly`, which `make nightly` sets, chooses the larger numbers, as it does for
the tests that hypothesis draws. The cases of a push are the first of the night's.
"""

import os

NIGHT = os.environ.get("MOORAGE_HYPOTHESIS") == "nightly"


def cases(push: int, night: int) -> int:
    """The number for this run."""
    return night if NIGHT else push
