"""The errors of Gamelake, grouped by the action that must follow.

GamelakeError
├── StartupError        stop before any data moves   SettingsError · ContractError · CheckpointError · StoreError
│                                                    (TableRefusedError) · SplitPartitionError · BackupError ·
│                                                    QuestionError
├── RecordsError        dead-letter the records     SchemaError (UnknownSchemaError, UnknownMessageError) ·
│                                                    IncompatibleSchemaError · PoisonError
├── TransientError      retry with backoff           RegistryUnavailableError · KafkaUnavailableError ·
│                                                    VaultUnavailableError (gamelake/privacy/vault) ·
│                                                    StoreUnavailableError · LeaseHeldError · LeaseLostError ·
│                                                    TwiceTakenError
└── DataLossError       stop the query               TopicRecreatedError · OffsetGapError · DeadLetterFloodError ·
                                                     AnotherDriverError · BrokenRuleError
"""


class GamelakeError(Exception):
    """The base of all errors of Gamelake."""


class StartupError(GamelakeError):
    """An operator must correct something before any data moves."""


class SettingsError(StartupError):
    """A setting is missing or malformed."""


class ContractError(StartupError):
    """A file under `contracts/` says something impossible."""


class CheckpointError(StartupError):
    """A checkpoint is damaged or belongs to another stream."""


class StoreError(StartupError):
    """The object store lacks what Delta commits rest on, or a table is not one that the platform writes."""


class TableRefusedError(StoreError):
    """One table can't take what is to be written, until an operator changes it; no other table is concerned."""


class BackupError(StartupError):
    """A backup can't be written, is incomplete, or belongs to other keys."""


class QuestionError(StartupError):
    """A query can't be answered in this form; the message says which form can."""


class SplitPartitionError(StartupError):
    """Spark gives the records of one Kafka partition to two tasks; deduplication needs one."""


class RecordsError(GamelakeError):
    """These records can't become rows, now or later; they become dead letters."""


class SchemaError(RecordsError):
    """A schema can't be used: it does not compile, or is beyond a limit."""


class UnknownSchemaError(SchemaError):
    """The registry has no schema under an id."""


class UnknownMessageError(SchemaError):
    """A schema has no message at the index that a record names."""


class IncompatibleSchemaError(RecordsError):
    """A schema gives a column a type that its table can't take."""


class PoisonError(RecordsError):
    """Tasks fail because of the content of some records."""


class TransientError(GamelakeError):
    """A retry may succeed."""


class RegistryUnavailableError(TransientError):
    """The schema registry did not answer."""


class KafkaUnavailableError(TransientError):
    """Kafka did not answer."""


class StoreUnavailableError(TransientError):
    """The object store is not available, takes no write, or its response can't be used."""


class TwiceTakenError(TransientError):
    """Concurrent streams have read the same events at every attempt."""


class LeaseHeldError(TransientError):
    """Another process holds the lease."""


class LeaseLostError(TransientError):
    """Another process has taken the lease over."""


class DataLossError(GamelakeError):
    """To continue would lose records or hide their loss; the query stops."""


class TopicRecreatedError(DataLossError):
    """The topic was made again: the checkpoint's offsets are of another one."""


class OffsetGapError(DataLossError):
    """Kafka no longer holds records that the checkpoint has yet to read."""


class AnotherDriverError(DataLossError):
    """A second driver writes the same stream."""


class DeadLetterFloodError(DataLossError):
    """The number of bad records is so high that a setting or a schema must be the cause, not the records."""


class BrokenRuleError(DataLossError):
    """Rows break a rule of the severity that stops the stream until an operator has decided."""
