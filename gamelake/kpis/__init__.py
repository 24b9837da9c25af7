"""The key figures of all games (KPIs), kept up by one streaming query over silver's events.

It knows silver's shared columns and the logs of its own tables; nothing of Kafka, of records, or of the fan-out.
"""
