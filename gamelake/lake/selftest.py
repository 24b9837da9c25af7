"""A store is tried before it is trusted: one that overwrites what it should refuse would lose commits in silence."""

import uuid

from obstore.exceptions import NotSupportedError, PermissionDeniedError, UnauthenticatedError

from gamelake.errors import StoreError
from gamelake.lake.store import Store

# One object for ever, whoever tries and however often: a stream's key may not be allowed to delete it.
PROBE = "_gamelake/store-self-test"


def require_put_if_absent(store: Store) -> None:
    """See whether a store refuses to create an object that is there.

    Raises:
        StoreError: it does not, or it lets us in too little to tell; names the store and the remedy.
    """
    try:
        kept = _keeps_the_first(store)
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreError(
            f"{store.location.uri} may not be read or written with these keys ({type(error).__name__} for {PROBE}). "
            "docs/settings.md says where keys are looked for, docs/operations.md which rights a job needs"
        ) from error
    except NotSupportedError as error:
        raise StoreError(_unfit(store)) from error
    if not kept:
        raise StoreError(_unfit(store))


def _keeps_the_first(store: Store) -> bool:
    """Whether the object that stands after one try still stands after another."""
    store.put_new(PROBE, uuid.uuid4().bytes)
    first = store.get(PROBE)
    overwritten = store.put_new(PROBE, uuid.uuid4().bytes)
    return first is not None and not overwritten and store.get(PROBE) == first


def _unfit(store: Store) -> str:
    return (
        f"the store of {store.location.uri} does not put objects only if they are absent (it ignores the header "
        "If-None-Match): two writers would overwrite each other's commits without an error. Nothing was read or "
        "written. Use a store with conditional writes, such as AWS S3 or MinIO, or update this one"
    )
