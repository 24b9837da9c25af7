"""The ledger: what streams and operators have decided, as records that outlive every process."""
