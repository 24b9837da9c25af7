"""The contracts under `contracts/`: games, aggregates, metrics, access and schedule, each checked at loading."""
