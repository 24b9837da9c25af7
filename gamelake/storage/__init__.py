"""The object store and what is kept there: Delta tables and their logs, manifests, leases, generations."""
