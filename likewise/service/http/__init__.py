"""The HTTP service on Starlette, the only web framework here: app.py has its routes."""
