"""Exits with 0 if the service in this container lives, whether it speaks HTTP or HTTPS."""  # noqa: INP001 - a program, no part of a package

import http.client
import os
import ssl
import urllib.request

HOST = os.environ.get("MOORAGE_HOST", "0.0.0.0")  # noqa: S104 - what it means, not a place to bind
HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(HOST, HOST)  # noqa: S104 - as above
PLACE = f"[{HOST}]" if ":" in HOST else HOST
PLACE += f":{os.environ.get('MOORAGE_PORT', '8778')}/healthz"
SECONDS = 2

# The certificate has the name that clients use, not this one; only life is asked for here.
ANYBODY = ssl.create_default_context()
ANYBODY.check_hostname = False
ANYBODY.verify_mode = ssl.CERT_NONE

try:
    urllib.request.urlopen(f"http://{PLACE}", timeout=SECONDS)
except (OSError, http.client.HTTPException):
    urllib.request.urlopen(f"https://{PLACE}", timeout=SECONDS, context=ANYBODY)
