"""The errors of Gamelake, grouped by what must happen next.

GamelakeError
├── StartupError        stop before any data moves   SettingsError · ContractError · CheckpointError · StoreError ·
│                                                    SplitPartitionError · BackupError · QuestionError
├── RecordsError        set these records aside      SchemaError (UnknownSchemaError) · IncompatibleSchemaError
├── TransientError      retry with backoff           RegistryUnavailableError · KafkaUnavailableError ·
│                                                    VaultUnavailableError (gamelake/vault) ·
│                                                    LeaseHeldError · LeaseLostError · TwiceTakenError
└── DataLossError       stop the query               TopicRecreatedError · OffsetGapError · DeadLetterFloodError ·
                                                     AnotherDriverError · BrokenRuleError
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


class BackupError(StartupError):
    """A backup of the vault can't be written, or is not whole, or belongs to other keys."""


class QuestionError(StartupError):
    """What was asked can't be answered as it was asked; says what to ask instead."""


class SplitPartitionError(StartupError):
    """Spark hands the records of one Kafka partition to two tasks, where duplicates need one."""


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


class TwiceTakenError(TransientError):
    """Two streams keep taking the same events at the same time."""


class LeaseHeldError(TransientError):
    """Another process does what one alone may do."""


class LeaseLostError(TransientError):
    """Another process has taken over what this one was doing."""


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


class BrokenRuleError(DataLossError):
    """Rows break a rule whose severity says that nothing goes on until a person has looked."""
