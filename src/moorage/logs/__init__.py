"""What every process of the service writes to its log, in one form, with the ids of the request.

Only the form is decided here and where it goes: standard error or a file. What is worth a line is
said where it happens; nothing here knows a request, a store or a solver.
"""

from moorage.logs.formatter import FORMATS, configure
from moorage.logs.ids import CURRENT, NONE, Ids
from moorage.logs.repeated_messages import Lasting

__all__ = ["CURRENT", "FORMATS", "NONE", "Ids", "Lasting", "configure"]
