"""Receives alerts until SIGTERM or Ctrl-C: `python -m services.alert_receiver`."""

from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.program import OK, run, stop_event
from services.alert_receiver.server import Receiver
from services.alert_receiver.settings import ReceiverSettings

log = event_logger("alert_receiver")


def main() -> int:
    """Serve until stopped. Return the exit code.

    Raises:
        SettingsError: it can't start as it is configured.
    """
    stop = stop_event()
    try:
        with Receiver(ReceiverSettings.from_env()) as receiver:
            log.info("receiver_started", port=receiver.server_port)
            # An exception that a signal raises would end the server between a thread's creation and its start.
            while not stop.is_set():
                receiver.handle_request()
    except OSError as error:
        raise SettingsError(f"the receiver can't start: {error}") from error
    return OK


if __name__ == "__main__":
    run(main)
