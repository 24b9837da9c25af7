"""Receives alerts until SIGTERM or Ctrl-C: `python -m services.alert_receiver`."""

import signal

from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.program import OK, run
from services.alert_receiver.server import Receiver
from services.alert_receiver.settings import ReceiverSettings

log = event_logger("alert_receiver")


def main() -> int:
    """Serve until stopped; gives the exit code.

    Raises:
        SettingsError: it can't start as it is configured.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Receiver(ReceiverSettings.from_env()) as receiver:
            log.info("receiver_started", port=receiver.server_port)
            receiver.serve_forever()
    except KeyboardInterrupt:
        pass
    except OSError as error:
        raise SettingsError(f"the receiver can't start: {error}") from error
    return OK


if __name__ == "__main__":
    run(main)
