"""The gold tables: aggregates of silver that the contract declares in SQL, kept equal to what a full recompute gives.

It knows the logs of the tables that it reads and writes; nothing of Kafka, of Spark, or of how silver was made.
"""
