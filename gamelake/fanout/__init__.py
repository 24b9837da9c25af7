"""The fan-out: one pass over each micro-batch, from Kafka records to a commit in every table.

It is the one place that brings decoding, the layers and Spark together.
"""
