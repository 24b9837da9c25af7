"""Signed files with all experiments of a game, to assign players without a gateway."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from .ed25519 import KEY_BYTES, is_signature
from .errors import ExperimentFileError
from .experiments import BUCKETS, Experiment

_CONTEXT = b"gamelake-experiments-1"


@dataclass(frozen=True, slots=True)
class DatedExperiment:
    """An experiment, and when it runs, in seconds since 1970."""

    assignment: Experiment
    starts_at: int
    ends_at: int


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The experiments of one game; `gamelake experiments publish` writes the file.

    Attributes:
        game: the game's name.
        expires_at: in seconds since 1970. After it, no player has a variant.
        experiments: by name.
    """

    game: str
    expires_at: int
    experiments: Mapping[str, DatedExperiment]

    @classmethod
    def load(cls, content: bytes, keys: Mapping[str, str], now: float) -> "ExperimentFile":
        """Check a file's signature and time, and return its experiments.

        Args:
            content: the file's bytes.
            keys: the public keys that may sign, in base64, by their ids; two while one replaces the other.
            now: in seconds since 1970.

        Raises:
            ExperimentFileError: the file is damaged, expired or not signed by one of the keys, or its key is malformed.
        """
        payload = _signed_payload(content, keys)
        try:
            document = json.loads(payload)
            experiments = {each["name"]: _experiment(each) for each in document["experiments"]}
            loaded = cls(str(document["game"]), index(document["expires_at"]), experiments)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            message = "the experiment file has a format that this SDK does not know: update the SDK"
            raise ExperimentFileError(message) from None
        if now >= loaded.expires_at:
            raise ExperimentFileError(f"the experiment file expired at {loaded.expires_at} (seconds since 1970)")
        return loaded

    def variant_of(
        self, experiment: str, player: str, context: Mapping[str, object] | None = None, *, now: float
    ) -> str | None:
        """Return a player's variant; None if the player is not in the experiment, or it does not run now.

        Args:
            experiment: the experiment's name.
            player: the game's own name of the player.
            context: the player's `platform`, `country` and `app_version`.
            now: in seconds since 1970.
        """
        found = self.experiments.get(experiment)
        if found is None or now >= self.expires_at or not found.starts_at <= now < found.ends_at:
            return None
        return found.assignment.variant_of(player, context)


def _signed_payload(content: bytes, keys: Mapping[str, str]) -> str:
    try:
        envelope = json.loads(content)
        payload, key, signature = (envelope[name] for name in ("payload", "key", "signature"))
        signed, signature = _CONTEXT + b"\0" + payload.encode(), base64.b64decode(signature, validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ExperimentFileError("the experiment file is damaged: it is not a signed file") from None
    if not isinstance(key, str) or key not in keys:
        raise ExperimentFileError("the experiment file is signed with a key that this game does not know")
    if not is_signature(_public_key(key, keys[key]), signed, signature):
        raise ExperimentFileError("the signature of the experiment file is wrong")
    return str(payload)


def _public_key(key: str, encoded: str) -> bytes:
    try:
        public = base64.b64decode(encoded, validate=True)
    except ValueError:
        public = b""
    if len(public) != KEY_BYTES:
        raise ExperimentFileError(f"the public key '{key}' is not {KEY_BYTES} bytes in base64")
    return public


def _experiment(document: Mapping[str, Any]) -> DatedExperiment:
    variants: Sequence[tuple[str, int]] = [(str(name), index(size)) for name, size in document["variants"]]
    if sum(size for _, size in variants) != BUCKETS:
        raise ValueError("the variants don't divide all buckets")
    conditions = {str(name): [str(each) for each in allowed] for name, allowed in document["conditions"].items()}
    name, salt, enrolled = str(document["name"]), str(document["salt"]), index(document["enrolled"])
    assignment = Experiment(name, salt, enrolled, variants, conditions)
    return DatedExperiment(assignment, index(document["starts_at"]), index(document["ends_at"]))
