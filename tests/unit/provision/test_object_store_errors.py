"""Errors of the object store are classified by MinIO's codes, wherever its client keeps them."""

import pytest
from minio.credentials import Credentials  # type: ignore[attr-defined] # it names no exports
from urllib3 import HTTPResponse, PoolManager

from services.provision import object_store
from services.provision.declarations import BucketNotification
from services.provision.object_store import ObjectStoreAdmin
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError

# Of MinIO's cmd/api-errors.go.
_NO_TARGET = "A specified destination ARN does not exist or is not well-formed. Verify the destination ARN."


class Connections(PoolManager):
    """Connections to a store that rejects every request."""

    def __init__(self, status: int, content_type: str, body: str) -> None:
        super().__init__()
        self._response = status, content_type, body

    def urlopen(self, *_: object, **__: object) -> HTTPResponse:
        status, content_type, body = self._response
        return HTTPResponse(body.encode(), {"Content-Type": content_type}, status, preload_content=True)


def rejecting(monkeypatch: pytest.MonkeyPatch, status: int, content_type: str, body: str) -> ObjectStoreAdmin:
    connections = Connections(status, content_type, body)
    monkeypatch.setattr(object_store, "PoolManager", lambda **_: connections)
    return ObjectStoreAdmin("http://object-store:9000", Credentials("root", "secret-of-a-test"))


def xml(code: str, message: str) -> str:
    return f"<Error><Code>{code}</Code><Message>{message}</Message><Resource>/b</Resource></Error>"


def test_a_policy_that_does_not_exist_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    body = '{"Code":"XMinioAdminNoSuchPolicy","Message":"The canned policy does not exist."}'
    admin = rejecting(monkeypatch, 404, "application/json", body)

    assert admin.policy("reader") is None


def test_an_unknown_code_of_the_admin_api_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = rejecting(monkeypatch, 403, "application/json", '{"Code":"AccessDenied","Message":"no"}')

    with pytest.raises(ServiceRefusedError, match="show a policy"):
        admin.policy("reader")


@pytest.mark.parametrize(
    ("message", "error"), [(_NO_TARGET, ServiceUnavailableError), ("Invalid prefix.", ServiceRefusedError)]
)
def test_a_target_that_is_not_registered_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, message: str, error: type[Exception]
) -> None:
    admin = rejecting(monkeypatch, 400, "application/xml", xml("InvalidArgument", message))

    with pytest.raises(error):
        admin.set_notification("landing", BucketNotification(target="A", prefix=""))


def test_the_wrong_key_of_root_is_a_refusal_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = rejecting(monkeypatch, 403, "application/xml", xml("SignatureDoesNotMatch", "no"))

    with pytest.raises(ServiceRefusedError, match="'make up' start the store"):
        admin.buckets()
