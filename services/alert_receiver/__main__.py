"""Receives alerts until SIGTERM or Ctrl-C: `python -m services.alert_receiver`."""

import signal
import sys

from gamelake.model.errors import SettingsError
from services.alert_receiver.server import Receiver
from services.alert_receiver.settings import ReceiverSettings


def main() -> int:
    """Serve until stopped; 0 after SIGTERM or Ctrl-C, 2 if it can't start."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Receiver(ReceiverSettings.from_env()) as receiver:
            print(f"alert-receiver: listens on port {receiver.server_port}", file=sys.stderr, flush=True)
            receiver.serve_forever()
    except KeyboardInterrupt:
        pass
    except (SettingsError, OSError) as error:
        print(f"alert-receiver: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
