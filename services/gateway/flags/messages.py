"""The messages of OFREP: contexts of players, and answers.

Source: https://github.com/open-feature/protocol/blob/main/service/openapi.yaml.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

import msgspec

from services.gateway.errors import RefusedError, UnreadableBodyError
from services.gateway.flags.experiments import FlagEvaluation, FlagReason

_ATTRIBUTES = ("platform", "country", "app_version")


class ErrorCode(StrEnum):
    """Why a flag has no value."""

    PARSE_ERROR = "PARSE_ERROR"
    TARGETING_KEY_MISSING = "TARGETING_KEY_MISSING"
    INVALID_CONTEXT = "INVALID_CONTEXT"
    FLAG_NOT_FOUND = "FLAG_NOT_FOUND"
    GENERAL = "GENERAL"


class EvaluationError(RefusedError):
    """A request can't be evaluated. The text never quotes the request."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class FlagNotFoundError(EvaluationError):
    """The game has no experiment with this name."""

    status = HTTPStatus.NOT_FOUND

    def __init__(self) -> None:
        super().__init__(ErrorCode.FLAG_NOT_FOUND, "the key's game has no experiment with this name")


@dataclass(frozen=True, slots=True)
class Context:
    """A request's player and attributes; `repr` leaves out both."""

    targeting_key: str
    attributes: Mapping[str, object]

    def __repr__(self) -> str:
        """Without the player: a context may appear in a traceback."""
        return "Context()"


class _Request(msgspec.Struct, frozen=True):
    context: msgspec.Raw = msgspec.Raw()


# Raw: the values of other attributes are not decoded, because a client may nest them deeply.
class _Context(msgspec.Struct, frozen=True):
    targeting_key: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="targetingKey")
    platform: msgspec.Raw = msgspec.Raw()
    country: msgspec.Raw = msgspec.Raw()
    app_version: msgspec.Raw = msgspec.Raw()


class _Answer(msgspec.Struct, frozen=True):
    key: str
    value: str
    variant: str
    reason: FlagReason
    metadata: dict[str, bool]


class _Answers(msgspec.Struct, frozen=True):
    flags: list[_Answer]


class _Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str | None = None
    errorCode: ErrorCode  # noqa: N815 # the protocol's name
    errorDetails: str  # noqa: N815 # see above


def context_of(body: bytes) -> Context:
    """Return the context of a request.

    Raises:
        EvaluationError: the body is not JSON, or has no targeting key.
    """
    try:
        content = msgspec.json.decode(body, type=_Request).context
        if _is_missing(content):
            raise _missing_targeting_key()
        if not bytes(content).lstrip().startswith(b"{"):
            raise EvaluationError(ErrorCode.INVALID_CONTEXT, "the context must be an object")
        context = msgspec.json.decode(content, type=_Context)
        attributes = {name: _text(getattr(context, name)) for name in _ATTRIBUTES}
        if _is_missing(context.targeting_key):
            raise _missing_targeting_key()
        player = _text(context.targeting_key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise EvaluationError(ErrorCode.PARSE_ERROR, "the body must be a JSON object") from None
    if player is None:
        raise EvaluationError(ErrorCode.INVALID_CONTEXT, "context.targetingKey must be a string")
    if not player:
        raise _missing_targeting_key()
    return Context(player, attributes)


def _is_missing(value: msgspec.Raw) -> bool:
    return bytes(value) in {b"", b"null"}


def _text(value: msgspec.Raw) -> str | None:
    """Return a string; None if the value is missing or has another type."""
    return msgspec.json.decode(value, type=str) if bytes(value).startswith(b'"') else None


def _missing_targeting_key() -> EvaluationError:
    message = "context.targetingKey is missing or empty: send the game's own name of the player"
    return EvaluationError(ErrorCode.TARGETING_KEY_MISSING, message)


def answer(evaluation: FlagEvaluation) -> bytes:
    """Return the answer for one flag, in JSON."""
    return msgspec.json.encode(_answer(evaluation))


def answers(evaluations: Sequence[FlagEvaluation]) -> bytes:
    """Return the answer for all flags of a game, in JSON."""
    return msgspec.json.encode(_Answers([_answer(each) for each in evaluations]))


def _answer(evaluation: FlagEvaluation) -> _Answer:
    # Only a player who is in the experiment causes an exposure.
    metadata = {"exposure": True} if evaluation.reason is FlagReason.SPLIT else {}
    return _Answer(evaluation.key, evaluation.variant, evaluation.variant, evaluation.reason, metadata)


def failure(error: RefusedError, key: str | None) -> bytes:
    """Return the JSON answer to a refused request; `key` is the flag of the path, or None for all flags."""
    return msgspec.json.encode(_Failure(key=key, errorCode=_code_of(error), errorDetails=str(error)))


def _code_of(error: RefusedError) -> ErrorCode:
    if isinstance(error, EvaluationError):
        return error.code
    return ErrorCode.PARSE_ERROR if isinstance(error, UnreadableBodyError) else ErrorCode.GENERAL
