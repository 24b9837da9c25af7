"""Serves the Data Docs of the last validation, as static files by HTTPS for clients with a certificate."""
