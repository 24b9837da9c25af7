"""Thin programs for spark-submit: read settings, build a session, name source and sink, run."""

from gamelake.program import leave_pandas_out

# Here, as no module of a job can do so before what it imports makes the first array.
leave_pandas_out()
