"""The table layers: bronze, silver and dead letters; columns, routing, event identity."""
