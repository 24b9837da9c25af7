"""Provisioning of the stack's services: topics and access rules, buckets and users, databases, schema compatibility.

Each program synchronizes one service with one file of `compose/`. It does not know the content of records and tables.
"""
