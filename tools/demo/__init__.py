"""One run of the whole platform on one machine: players, Kafka, the ingest job, and the proof that nothing is missing.

It starts the real programs and reads what they leave behind; it never imports Spark or takes part in the ingest.
"""
