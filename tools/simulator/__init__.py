"""Traffic simulator: realistic, reproducible events of games and their players, and a ledger of acknowledgements.

It does not know the tables that the events end in, nor Spark.
"""

from gamelake.program import leave_pandas_out

leave_pandas_out()
