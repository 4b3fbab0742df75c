"""The page for browsers, `/ui`: its files, and the sessions in which it calls the native API.

The files beside these modules are served as they are, under a digest of all of them. A session is
an encrypted cookie with a token; the page never sees the token, and nothing is kept in a worker.
Nothing here knows what the API is about.
"""

from moorage.web.application import PageSettings, WebApplication
from moorage.web.login import RoleLogin, TokenLogin
from moorage.web.session_auth import SessionAuthentication
from moorage.web.session_cookie import SessionCookies, keys_in_file
from moorage.web.static_files import StaticFiles

__all__ = [
    "PageSettings",
    "RoleLogin",
    "SessionAuthentication",
    "SessionCookies",
    "StaticFiles",
    "TokenLogin",
    "WebApplication",
    "keys_in_file",
]
