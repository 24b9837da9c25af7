"""Programs with a port or a long life: ingest gateway, catalog, delivery, provisioning, alerts; and the games' SDK.

They import the library, which imports none of them. None of them imports Spark, a job or a tool.
"""
