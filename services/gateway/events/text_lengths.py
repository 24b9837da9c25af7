"""Checks the lengths of an event's texts against the contract, event by event or as columns, with the same result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from gamelake.contract.games import TextLengths
from gamelake.model.arrays import Flags
from gamelake.model.errors import ContractError
from gamelake.schemas.text_lengths import too_long_texts
from services.gateway.errors import EventRejectedError, Reason

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_BYTES_PER_CHARACTER = 4
_TIMESTAMP = "google.protobuf.Timestamp"


# The name of a field, its path, and its limit.
_Text = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of a message type.

    Attributes:
        shortest: the smallest of the limits: no text of a message of this size is too long.
        inner: the fields that are messages, and whether each is a list of messages.
    """

    single: Sequence[_Text]
    lists: Sequence[_Text]
    maps: Sequence[_Text]
    inner: Sequence[tuple[str, bool, "_Texts"]]
    shortest: int

    def first_too_long(self, message: Message) -> str | None:
        """Return the path of the first text that is over its limit."""
        if message.ByteSize() <= self.shortest:
            return None
        for name, path, limit in self.single:
            if _is_longer(getattr(message, name), limit):
                return path
        return self._first_of_many(message) or self._first_of_inner(message)

    def _first_of_many(self, message: Message) -> str | None:
        for name, path, limit in self.lists:
            if any(_is_longer(text, limit) for text in getattr(message, name)):
                return path
        for name, path, limit in self.maps:
            if any(_is_longer(text, limit) for entry in getattr(message, name).items() for text in entry):
                return path
        return None

    def _first_of_inner(self, message: Message) -> str | None:
        for name, is_list, texts in self.inner:
            value = getattr(message, name)
            for each in value if is_list else (value,):
                found = texts.first_too_long(each)
                if found is not None:
                    return found
        return None

    def paths(self) -> Iterator[str]:
        """Return the paths of all texts."""
        yield from (path for _, path, _ in (*self.single, *self.lists, *self.maps))
        for _, _, texts in self.inner:
            yield from texts.paths()


class TextLengthCheck:
    """Checks events of one message type.

    Raises:
        ContractError: the contract limits a text that the message type lacks.
    """

    def __init__(self, event: Descriptor, lengths: TextLengths) -> None:
        self._texts = _texts_of(event, lengths)
        self._lengths = lengths
        paths = sorted(self._texts.paths())
        if unknown := sorted(set(lengths.fields) - set(paths)):
            raise ContractError(
                f"contracts/games.yaml limits the lengths of {unknown}, which are not texts of {event.full_name}; "
                f"its texts are {paths}"
            )

    def check(self, event: Message) -> None:
        """Check the texts of one event.

        Raises:
            EventRejectedError: one is too long; the error has its path.
        """
        if path := self._texts.first_too_long(event):
            raise EventRejectedError(Reason.TOO_LONG, path)

    def too_long(self, events: pa.RecordBatch) -> Flags:
        """Return one flag per row: one of the event's texts is too long."""
        found = np.zeros(events.num_rows, bool)
        for field, column in zip(events.schema, events.columns, strict=True):
            for _, rows in too_long_texts(column, field.name, self._lengths, with_bytes=True):
                found[rows] = True
        return found


def _is_longer(text: Any, limit: int) -> bool:  # noqa: ANN401 # the value of a map may be of any type
    """Return True if a text has more bytes than the limit."""
    if isinstance(text, str):
        size = len(text)
        return size * _BYTES_PER_CHARACTER > limit and (size > limit or len(text.encode()) > limit)
    return isinstance(text, bytes) and len(text) > limit


def _texts_of(message: Descriptor, lengths: TextLengths, parents: str = "") -> _Texts:
    single: list[_Text] = []
    lists: list[_Text] = []
    maps: list[_Text] = []
    inner: list[tuple[str, bool, _Texts]] = []
    for field in message.fields:
        path, kind = f"{parents}{field.name}", field.message_type
        if field.type in _TEXTS:
            (lists if field.is_repeated else single).append((field.name, path, lengths.of(path)))
        elif kind is not None and kind.GetOptions().map_entry:
            maps.append((field.name, path, lengths.of(path)))
        elif kind is not None and kind.full_name != _TIMESTAMP:
            inner.append((field.name, field.is_repeated, _texts_of(kind, lengths, f"{path}.")))
    limits = [*(limit for _, _, limit in (*single, *lists, *maps)), *(texts.shortest for _, _, texts in inner)]
    return _Texts(single, lists, maps, inner, min(limits, default=0))
