"""The object store: whole objects, conditional puts, and the leases that rely on them."""
