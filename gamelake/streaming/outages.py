"""The closed list of errors that are outages; any other error while reading is the fault of the content."""

from obstore.exceptions import BaseError

from gamelake.model.errors import StoreError, TransientError

# The store, Kafka or the registry is unreachable or refuses this process, or a disk is full. delta-rs and Arrow raise
# OSError for failures of a store or a disk. Readers of content convert their own OSError to an error of the content.
OUTAGES = (BaseError, OSError, StoreError, TransientError)
