"""Delta tables on a file system or an object store: files, statistics, schemas, idempotent commits, manifests.

It knows nothing of games, Protobuf or Spark.
"""
