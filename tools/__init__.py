"""Programs for people: demo, smoke test, drill, traffic simulator, backup, lineage page; and the services they start.

They import the library and the services, never Spark or a job; jobs run as processes of their own.
"""
