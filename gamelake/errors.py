"""The errors of Gamelake, grouped by what must happen next.

GamelakeError
├── StartupError        stop before any data moves   SettingsError · ContractError · CheckpointError · StoreError
├── RecordsError        set these records aside      SchemaError (UnknownSchemaError) · IncompatibleSchemaError
├── TransientError      retry with backoff           RegistryUnavailableError · KafkaUnavailableError
└── DataLossError       stop the query               TopicRecreatedError · OffsetGapError · DeadLetterFloodError ·
                                                     AnotherDriverError
"""


class GamelakeError(Exception):
    """Whatever Gamelake itself raises."""


class StartupError(GamelakeError):
    """Something is wrong that a person must put right before any data moves."""


class SettingsError(StartupError):
    """A setting is missing or malformed."""


class ContractError(StartupError):
    """A file under `contracts/` says something impossible."""


class CheckpointError(StartupError):
    """A checkpoint is damaged or belongs to another stream."""


class StoreError(StartupError):
    """The object store does not keep the promises that Delta commits rest on."""


class RecordsError(GamelakeError):
    """These records can't become rows, now or later; they go to the dead letters."""


class SchemaError(RecordsError):
    """A schema can't be used: it does not compile, or lacks the message that a record names."""


class UnknownSchemaError(SchemaError):
    """The registry has no schema under an id."""


class IncompatibleSchemaError(RecordsError):
    """A schema gives a column a type that its table can't take."""


class TransientError(GamelakeError):
    """Trying again later may help."""


class RegistryUnavailableError(TransientError):
    """The schema registry gave no answer."""


class KafkaUnavailableError(TransientError):
    """Kafka gave no answer."""


class DataLossError(GamelakeError):
    """Going on would lose records or hide that they are lost; the query stops."""


class TopicRecreatedError(DataLossError):
    """The topic is not the one that the checkpoint's offsets count in."""


class OffsetGapError(DataLossError):
    """Kafka no longer holds records that the checkpoint has yet to read."""


class AnotherDriverError(DataLossError):
    """A second driver writes the same stream."""


class DeadLetterFloodError(DataLossError):
    """So many records are bad that the fault is not theirs."""
