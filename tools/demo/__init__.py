"""Demo: one run of the platform on one machine, with simulated players, Kafka, the ingest job, and a reconciliation.

It starts the real programs and reads their output; it does not import Spark or take part in the ingestion.
"""

from gamelake.program import leave_pandas_out

leave_pandas_out()
