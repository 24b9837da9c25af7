"""Superset for gunicorn: `gunicorn wsgi:application`."""

import numpy_names  # noqa: F401 # before Superset
from superset.app import create_app

application = create_app()
