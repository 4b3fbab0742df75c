"""1.20: POST of a provider answers 200 and shows it; before, 201 and nothing."""

from dataclasses import replace

from moorage.http.microversion import Change, Response


def _silent(response: Response) -> Response:
    return replace(response, status=201, body=None, modified=None)


CHANGE = Change(since="1.20", feature="create-shows-provider", lower={"providers.create": _silent})
