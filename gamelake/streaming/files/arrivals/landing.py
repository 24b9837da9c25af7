"""Reads and lists the bucket or the folder in which files of events arrive."""

from collections.abc import Sequence

import obstore
from obstore.exceptions import PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import ObjectStore

from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import Location, open_objects
from gamelake.streaming.files.arrivals.any_names import (
    ListedObject,
    MissingObjectError,
    OverwrittenObjectError,
    any_names,
    bucket_of,
    require_same_content,
)
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.formats.events import UnreadableFileError

_PARTIAL = (".tmp", ".part", ".partial")
# No object has this name, so a store that answers reports it as missing.
_PROBE = ".gamelake-probe"
_DENIED = (PermissionDeniedError, UnauthenticatedError, PermissionError)
_ANSWERS = (MissingObjectError, OverwrittenObjectError, StoreUnavailableError)


class LandingBucket:
    """Reads objects by the names in notifications, and lists the bucket for reconciliation; for several threads.

    Attributes:
        bucket: the name of the bucket, or of the folder without its path.
    """

    def __init__(self, location: Location, others: Sequence[str] = ()) -> None:
        """Open the bucket.

        Args:
            location: of the bucket or folder.
            others: the keys of a few objects; if one object can't be read, these show if the store answers.

        Raises:
            StoreUnavailableError: the location is a folder that does not exist.
        """
        self.bucket = bucket_of(location)
        self._any_names = any_names(location)
        self._objects: ObjectStore = open_objects(location)
        self._others = tuple(others)

    def read(self, name: ObjectName, limit: int) -> memoryview | None:
        """Return the content of an object; None if it is larger than `limit` bytes.

        Raises:
            MissingObjectError: the object was deleted.
            OverwrittenObjectError: the object was overwritten since its notification.
            UnreadableFileError: the store answers for other objects, but not for this one: it is archived, it has
                another encryption key, or the store or every client refuses its name.
            StoreUnavailableError: the store does not answer, or refuses all requests.
        """
        try:
            return self._read(name, limit)
        except _ANSWERS:
            raise
        except ValueError:
            raise UnreadableFileError("the object has a key that no client of the store can request") from None
        except Exception as error:
            # The error alone does not show if it concerns one object or all of them: a 403 may mean an archived object
            # or revoked credentials.
            if not self._answers(name.key, is_denied=isinstance(error, _DENIED)):
                raise StoreUnavailableError(f"files can't be read from {self.bucket}: {error}") from error
        return self._read_again(name, limit)

    def _read_again(self, name: ObjectName, limit: int) -> memoryview | None:
        """Read an object again after an error, in case the store was unreachable only for a moment."""
        try:
            return self._read(name, limit)
        except _ANSWERS:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise UnreadableFileError(f"the store answers, but it does not return the object ({kind})") from None

    def _answers(self, key: str, *, is_denied: bool) -> bool:
        """Return True if the store answers for another object, or for this object's size.

        If access was denied, the probe is in the same folder, because access may be granted by folder; the object's
        size and a few other objects are tried too. Otherwise only one request is sent: if the store is unreachable,
        the client needs minutes to give up.
        """
        folder, slash, _ = key.rpartition("/")
        known = [f"{folder}{slash}{_PROBE}", key, *self._others] if is_denied else [_PROBE]
        return any(map(self._answers_for, known))

    def _answers_for(self, key: str) -> bool:
        try:
            obstore.head(self._objects, key)
        except (FileNotFoundError, ValueError):
            # The answer to HEAD has no body, which would show if the object or the bucket is missing.
            return self._answers_get(key)
        except Exception:  # no error of any other kind is an answer
            return False
        return True

    def _answers_get(self, key: str) -> bool:
        try:
            self._read(ObjectName(bucket=self.bucket, key=key, version="", etag=""), 0)
        except MissingObjectError:
            return True
        except Exception:  # as above
            return False
        return True

    def _read(self, name: ObjectName, limit: int) -> memoryview | None:
        if name.key.startswith("/") or name.key.endswith("/"):
            # obstore would remove the slash, and read another object.
            return self._any_names.read(name, limit)
        try:
            found = self._get(name)
        except ValueError:
            return self._any_names.read(name, limit)
        require_same_content(name, found.meta.get("e_tag") or "")
        return None if found.meta["size"] > limit else memoryview(found.bytes())

    def _get(self, name: ObjectName) -> "obstore.GetResult":
        options: obstore.GetOptions = {}
        if name.version:
            options["version"] = name.version
        try:
            return obstore.get(self._objects, name.key, options=options)
        except FileNotFoundError as error:
            raise self._any_names.absence(name, error) from None
        except PreconditionError:
            raise OverwrittenObjectError(f"{name.bucket}/{name.key} was overwritten") from None

    def objects(self, prefix: str) -> list[ListedObject]:
        """List all objects under a prefix, whatever their names are; only reconciliation calls this.

        Raises:
            StoreUnavailableError: the store does not answer.
        """
        return list(self._any_names.objects(prefix))


def is_partial(key: str) -> bool:
    """Return True if a file's name marks it as incomplete: hidden, .tmp, .part, .partial."""
    name = key.rsplit("/", 1)[-1]
    return name.startswith(".") or name.endswith(_PARTIAL)
