"""What analysts read: the questions and views of `sql/`, as Trino has them and as other engines say the same.

It knows what SQL says of tables, and asks them in its own process; nothing of Spark, of Trino's server, or of how rows
came to be.
"""
