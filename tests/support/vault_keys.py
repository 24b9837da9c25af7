"""The vault's own keys, as the file that the service reads."""

import base64
from pathlib import Path

_KEYS = {"first": b"1" * 32, "second": b"2" * 32}


def key_file(folder: Path, current: str = "first") -> Path:
    """Write a file of two key-encryption keys, one of which is current."""
    lines = [f"index: {base64.b64encode(b'i' * 32).decode()}", f"current: {current}", "keys:"]
    lines += [f"  {name}: {base64.b64encode(key).decode()}" for name, key in _KEYS.items()]
    file = folder / "vault-keys.yaml"
    file.write_text("\n".join(lines))
    return file
