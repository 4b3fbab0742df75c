"""The module that WSGI servers are told: `placement.wsgi.api:application`."""

from placement.wsgi import init_application

application = init_application()
