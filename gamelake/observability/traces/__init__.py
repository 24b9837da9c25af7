"""OpenTelemetry traces of some events, from the gateway to the commit of their tables.

A trace has the id of its event, and its first span the second half of that id. So each process that knows an event adds
its spans without a context in Kafka, and all processes choose the same events: by the last digits of their ids.
"""
