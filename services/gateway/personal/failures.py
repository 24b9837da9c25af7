"""What the vault's failures are to whoever has sent a request."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gamelake.vault.secrecy import TamperedError
from gamelake.vault.vault import VaultUnavailableError
from services.gateway import metrics
from services.gateway.errors import NotTakenError

log = logging.getLogger(__name__)


@contextmanager
def vault_asked() -> Iterator[None]:
    """Have the same request sent again when the vault fails within the block.

    Raises:
        NotTakenError: it did.
    """
    try:
        yield
    except VaultUnavailableError as error:
        log.warning("the vault does not answer: %s", error)
        metrics.count_vault_failure()
        raise NotTakenError("the vault does not answer") from None
    except TamperedError:
        log.exception("the vault is not what was written")
        raise NotTakenError("the vault can't be read") from None
