"""What must hold while the doors are attacked, written down before any run.

The service has two HTTP workers, two planners and one solver process, and every limit of a tenant
at its default.
"""

from typing import Final

ANSWER: Final = 30.0
"""Seconds that an answer may take; the service is given half of them as `request_time_limit`."""
MEDIAN: Final = 2.0
"""The median of another tenant's answers, as a multiple of what it is in the calm minutes."""
LATE: Final = 3.0
"""The same of the 99th percentile."""
MEMORY: Final = 1_000.0
"""Megabytes of all processes together, pages that they share counted once."""
GROWTH: Final = 1.25
"""How much more memory the last quarter may use than the second."""
LONG_ENOUGH: Final = 600.0
"""Seconds from which memory's growth and latency are judged; before that it still fills."""
CALM: Final = 20.0
"""Seconds without attacks, in which latency is measured alone."""
ATTACKED: Final = 100.0
"""Seconds with attacks between them."""
