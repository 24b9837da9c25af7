"""`POST /ofrep/v1/evaluate/flags` and `.../flags/{key}`: a player's variants, for any client of OpenFeature.

Requests are signed like those with events. The targeting key is the game's own name of the player, which is personal:
the gateway hashes it, forgets it, and keeps it out of logs, metrics, traces and answers.
"""

import time
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from services.gateway import metrics
from services.gateway.authentication import Authenticator, GameKey, Role, SignatureHeaders
from services.gateway.errors import (
    ForbiddenError,
    MethodNotAllowedError,
    OverMemoryError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from services.gateway.flags.experiments import ExperimentFlags, FlagEvaluation
from services.gateway.flags.messages import (
    Context,
    EvaluationError,
    FlagNotFoundError,
    answer,
    answers,
    context_of,
    failure,
)
from services.gateway.limits.memory_budget import REQUEST_BYTES, MemoryBudget, Reservation
from services.gateway.limits.rates import RateLimits
from services.gateway.request_body import BodyReader
from services.gateway.responses import Headers, Response, retry_headers

FLAGS_PATH = "/ofrep/v1/evaluate/flags"
# A context with a few attributes takes a few hundred bytes.
MOST_BODY_BYTES = 16 * 1024
# Memory of a request: copies of its body while it is parsed, and bytes for each flag of the answer.
_CONTEXT_COPIES, _FLAG_BYTES = 4, 1024
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class FlagsEndpoint:
    """Evaluates flags. Requests share the limits of rate and memory with the game's events.

    Attributes:
        experiments: the flags of all games.
        body_reader: reads at most `MOST_BODY_BYTES`.
    """

    experiments: ExperimentFlags
    authenticator: Authenticator
    rates: RateLimits
    body_reader: BodyReader
    memory: MemoryBudget

    async def respond(self, scope: Any, protocol: Any) -> Response:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request, which may be invalid, and return the response."""
        flag = None if scope.path == FLAGS_PATH else scope.path.removeprefix(f"{FLAGS_PATH}/")
        if scope.method != "POST":
            error = MethodNotAllowedError("send a POST request")
            return _failure_response(error, flag, [("allow", "POST")])
        try:
            return await self._process(scope.headers, protocol, flag)
        except RefusedError as error:
            return _failure_response(error, flag, retry_headers(error))

    async def _process(self, headers: Any, protocol: Any, flag: str | None) -> Response:  # noqa: ANN401 # see above
        signature, content_length = SignatureHeaders.of(headers), headers.get("content-length", "")
        try:
            key = self.authenticator.find_key(signature, time.time())
            _check_format(headers)
            expected = self.body_reader.expected_size(content_length)
            memory = self._reserve(key, expected)
        except RefusedError:
            await self.body_reader.drain(protocol)
            raise
        with memory:
            body = await self.body_reader.read(content_length, protocol)
            self.authenticator.verify(key, signature, body)
            if key.role is not Role.GAME:
                raise ForbiddenError("a support key can't evaluate flags: sign with a game key")
            return self._evaluate(key, body, flag, headers.get("if-none-match", ""))

    def _reserve(self, key: GameKey, expected: int) -> Reservation:
        flags = len(self.experiments.all_of(key.game))
        try:
            return self.memory.reserve(key.game, REQUEST_BYTES + _CONTEXT_COPIES * expected + _FLAG_BYTES * flags)
        except OverMemoryError:
            metrics.count_over_memory(key.game)
            raise

    def _evaluate(self, key: GameKey, body: bytes, flag: str | None, known: str) -> Response:
        try:
            self.rates.take(key, 1, time.monotonic())
            if not self.experiments.is_known:
                raise UnavailableError("the experiments contract has an error; the gateway's log names it")
            context = context_of(body)
            evaluations = self._all(key.game, context) if flag is None else [self._one(key.game, flag, context)]
        except RateLimitedError:
            metrics.count_evaluations(key.game, {metrics.EvaluationResult.THROTTLED: 1})
            raise
        except FlagNotFoundError:
            metrics.count_evaluations(key.game, {metrics.EvaluationResult.NOT_FOUND: 1})
            raise
        except EvaluationError:
            metrics.count_evaluations(key.game, {metrics.EvaluationResult.INVALID: 1})
            raise
        metrics.count_evaluations(
            key.game, Counter(metrics.EvaluationResult(each.reason.lower()) for each in evaluations)
        )
        if flag is not None:
            return Response(HTTPStatus.OK, [("content-type", _JSON)], answer(evaluations[0]))
        return _bulk_response(answers(evaluations), known)

    def _one(self, game: str, flag: str, context: Context) -> FlagEvaluation:
        found = self.experiments.find(game, flag)
        if found is None:
            raise FlagNotFoundError
        return found.evaluate(context.targeting_key, context.attributes, self.experiments.clock())

    def _all(self, game: str, context: Context) -> list[FlagEvaluation]:
        now = self.experiments.clock()
        flags = self.experiments.all_of(game)
        return [each.evaluate(context.targeting_key, context.attributes, now) for each in flags]


def _failure_response(error: RefusedError, flag: str | None, headers: Headers) -> Response:
    return Response(error.status, [("content-type", _JSON), *headers], failure(error, flag))


def _bulk_response(content: bytes, known: str) -> Response:
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    if known.strip() == "*" or tag in [each.strip().removeprefix("W/") for each in known.split(",")]:
        return Response(HTTPStatus.NOT_MODIFIED, [("etag", tag)], b"")
    return Response(HTTPStatus.OK, [("content-type", _JSON), ("etag", tag)], content)


def _check_format(headers: Any) -> None:  # noqa: ANN401 # RSGI's, which has no types
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaTypeError(f"content-type must be {_JSON}")
    if headers.get("content-encoding", "").lower() not in {"", "identity"}:
        raise UnsupportedMediaTypeError("the body of an evaluation must not be compressed")
