"""The token by which Prometheus reads the object store's metrics."""

import base64
import hashlib
import hmac
import json

import pytest

from gamelake.model.errors import SettingsError
from services.provision.metrics_token import token

KEY = ["[default]\n", "aws_access_key_id = gamelake-metrics\n", "aws_secret_access_key = 0123456789abcdef\n"]


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_a_token_names_the_user_and_is_signed_by_its_key() -> None:
    header, claims, signature = token(KEY).split(".")

    assert json.loads(decoded(header))["alg"] == "HS512"
    assert json.loads(decoded(claims))["sub"] == "gamelake-metrics"
    expected = hmac.digest(b"0123456789abcdef", f"{header}.{claims}".encode(), hashlib.sha512)
    assert hmac.compare_digest(decoded(signature), expected)


def test_an_incomplete_key_is_an_error_that_does_not_quote_it() -> None:
    with pytest.raises(SettingsError, match="aws_secret_access_key") as refused:
        token(KEY[:2])

    assert "gamelake-metrics" not in str(refused.value)
