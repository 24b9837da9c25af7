"""How long a task waits for the schema registry, as the environment says it."""

from datetime import timedelta

from gamelake.settings.environment import Environment
from gamelake.wire.schemas import SchemaWait


def schema_wait(env: Environment) -> SchemaWait:
    """The patience of whoever decodes.

    Raises:
        SettingsError: a variable is malformed.
    """
    return SchemaWait(
        patience=timedelta(seconds=env.number("GAMELAKE_SCHEMA_WAIT_SECONDS", 10, 0, 3_600)),
        ask_again_after=timedelta(seconds=env.number("GAMELAKE_SCHEMA_RETRY_SECONDS", 60, 0, 86_400)),
    )
