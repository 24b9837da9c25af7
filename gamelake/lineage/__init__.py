"""Lineage: from which tables, by which job, query and schema versions each table comes, as OpenLineage events.

It knows manifests, gold's definitions and tables' logs; nothing of Spark, and no failure of it may reach a job.
"""
