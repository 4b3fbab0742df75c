"""1.37: PUT of a provider may move it under another parent, or to the top."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.37", feature="re-parenting")
