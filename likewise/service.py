"""`create_app`: the ASGI application of `likewise serve`. Extra `serve`."""

from search.server.app import create_app as create_app
