"""Programs with a port: the games that send events, and the services that a laptop lacks.

They use the library; the library and the jobs know nothing of them, and none of them imports Spark.
"""
