"""Administration of the object store: buckets over S3, users and policies over MinIO's admin API."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from minio import Minio
from minio.commonconfig import ENABLED, Filter
from minio.credentials import Credentials, StaticProvider  # type: ignore[attr-defined] # it names no exports
from minio.error import InvalidResponseError, MinioAdminException, S3Error, ServerError
from minio.lifecycleconfig import Expiration, LifecycleConfig, Rule
from minio.minioadmin import MinioAdmin
from minio.notificationconfig import NotificationConfig, PrefixFilterRule, QueueConfig
from minio.versioningconfig import SUSPENDED, VersioningConfig
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from gamelake.model.errors import SettingsError
from gamelake.objects.store import shared_credentials
from services.provision.declarations import BucketNotification, Policy
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError

ANSWER = timedelta(seconds=20)
_WRONG_KEY = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch"})
# Targets of notifications are registered some seconds after the store has started; the code is this module's.
_NO_TARGET_YET = "NoTargetYet"
_NO_SUCH_TARGET = "A specified destination ARN does not exist"
_NOT_YET = frozenset({"XMinioServerNotInitialized", "ServiceUnavailable", "SlowDown", "InternalError", _NO_TARGET_YET})
_NO_SUCH_POLICY = "XMinioAdminNoSuchPolicy"
_NEW_OBJECTS = "s3:ObjectCreated:*"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundUser:
    """A user as the store has it."""

    policies: frozenset[str]
    is_enabled: bool


class ObjectStoreAdmin:
    """Reads and changes the buckets, users and policies of a store, as its root user."""

    def __init__(self, endpoint: str, root: Credentials) -> None:
        parts = urlsplit(endpoint)
        self._host, self._secure = parts.netloc, parts.scheme == "https"
        # The clients' own pool retries for minutes; here the caller decides how long to wait.
        self._http = PoolManager(timeout=Timeout(ANSWER.total_seconds()), retries=False)
        self._s3 = self._client(root)
        self._admin = MinioAdmin(
            endpoint=self._host,
            credentials=StaticProvider(root.access_key, root.secret_key),
            secure=self._secure,
            http_client=self._http,
        )

    def buckets(self) -> frozenset[str]:
        """Return the names of all buckets.

        Raises:
            ServiceUnavailableError: the store is not available, or not ready yet.
            ServiceRefusedError: wrong root key.
        """
        return _call("list buckets", lambda: frozenset(bucket.name for bucket in self._s3.list_buckets()))

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        _call(f"create the bucket {name}", lambda: self._s3.make_bucket(name))

    def keeps_versions(self, bucket: str) -> bool:
        """Return True if versioning of a bucket is enabled."""
        return _call("show versioning", lambda: self._s3.get_bucket_versioning(bucket).status == ENABLED)

    def keep_no_versions(self, bucket: str) -> None:
        """Suspend versioning of a bucket."""
        _call("suspend versioning", lambda: self._s3.set_bucket_versioning(bucket, VersioningConfig(SUSPENDED)))

    def quota(self, bucket: str) -> int:
        """Return the number of bytes that a bucket may have; 0 is unlimited."""
        return int(json.loads(_call("show a quota", lambda: self._admin.bucket_quota_get(bucket)))["quota"])

    def set_quota(self, bucket: str, size: int) -> None:
        """Set how many bytes a bucket may have; 0 is unlimited. Existing objects stay."""
        _call(f"set the quota of {bucket}", lambda: self._admin.bucket_quota_set(bucket, size))

    def expires_days(self, bucket: str) -> int | None:
        """Return the number of days after which objects of a bucket expire; None if never."""
        found = _call("show what expires", lambda: self._s3.get_bucket_lifecycle(bucket))
        ages = [rule.expiration.days for rule in found.rules if rule.expiration] if found else []
        return ages[0] if ages else None

    def let_expire(self, bucket: str, days: int) -> None:
        """Set the number of days after which objects of a bucket expire."""
        rule = Rule(ENABLED, rule_id="expire", rule_filter=Filter(prefix=""), expiration=Expiration(days=days))
        _call("let objects expire", lambda: self._s3.set_bucket_lifecycle(bucket, LifecycleConfig([rule])))

    def notification(self, bucket: str) -> BucketNotification | None:
        """Return the notification of new objects of a bucket, None if there is none."""
        found = _call("show notifications", lambda: self._s3.get_bucket_notification(bucket))
        for each in found.queue_config_list or ():
            prefix = each.prefix_filter_rule.value if each.prefix_filter_rule else ""
            return BucketNotification(target=str(each.queue).split(":")[-2], prefix=prefix)
        return None

    def set_notification(self, bucket: str, notification: BucketNotification) -> None:
        """Set the notification of new objects of a bucket."""
        queue = QueueConfig(
            queue=f"arn:minio:sqs::{notification.target}:kafka",
            events=[_NEW_OBJECTS],
            config_id="new-objects",
            prefix_filter_rule=PrefixFilterRule(notification.prefix) if notification.prefix else None,
        )
        _call(
            f"notify {notification.target} of new objects",
            lambda: self._s3.set_bucket_notification(bucket, NotificationConfig(queue_config_list=[queue])),
        )

    def policy(self, name: str) -> str | None:
        """Return the text of a policy, None if there is none."""
        try:
            return str(self._admin.policy_info(name))
        except MinioAdminException as error:
            if _code_of(error) == _NO_SUCH_POLICY:
                return None
            raise _classified("show a policy", error) from error

    def set_policy(self, policy: Policy) -> None:
        """Create or replace a policy; its users have the new rights at once."""
        _call(
            f"set policies/{policy.name}.json",
            lambda: self._admin.policy_add(policy.name, policy=json.loads(policy.text)),
        )

    def users(self) -> Mapping[str, FoundUser]:
        """Return all users except root, by their access keys."""
        answer = json.loads(_call("list users", self._admin.user_list))
        return {
            key: FoundUser(
                frozenset(filter(None, found.get("policyName", "").split(","))), found["status"] == "enabled"
            )
            for key, found in answer.items()
        }

    def knows(self, key: Credentials) -> bool:
        """Return True if the store accepts this access key with this secret, whatever its rights are."""
        try:
            self._client(key).list_buckets()
        except S3Error as error:
            return error.code not in _WRONG_KEY
        except (HTTPError, ServerError, InvalidResponseError) as error:
            raise ServiceUnavailableError(f"the object store is not available: {error}") from error
        return True

    def set_user(self, key: Credentials) -> None:
        """Create a user, or change its secret; the user is enabled."""
        _call(f"create the user {key.access_key}", lambda: self._admin.user_add(key.access_key, key.secret_key))

    def attach(self, user: str, policy: str) -> None:
        """Grant a user the rights of a policy."""
        _call(f"give {user} a policy", lambda: self._admin.attach_policy([policy], user=user))

    def detach(self, user: str, policy: str) -> None:
        """Revoke the rights of a policy from a user."""
        _call(f"revoke a policy from {user}", lambda: self._admin.detach_policy([policy], user=user))

    def _client(self, key: Credentials) -> Minio:
        return Minio(
            self._host, key.access_key, key.secret_key, secure=self._secure, http_client=self._http, region="us-east-1"
        )


def read_key(file: Path) -> Credentials:
    """Read a key from an AWS credentials file.

    Raises:
        SettingsError: the file can't be read or has no key; the message has no content of the file.
    """
    try:
        key = shared_credentials(file, "default")
    except SettingsError as error:
        raise SettingsError(f"{file} has no key of a [default] profile: run 'make up', which creates it") from error
    return Credentials(key["AWS_ACCESS_KEY_ID"], key["AWS_SECRET_ACCESS_KEY"])


def _call(what: str, question: Callable[[], T]) -> T:
    try:
        return question()
    except (HTTPError, ServerError, InvalidResponseError, S3Error, MinioAdminException) as error:
        raise _classified(what, error) from error


def _classified(what: str, error: Exception) -> ServiceUnavailableError | ServiceRefusedError:
    code = _code_of(error)
    if code in _WRONG_KEY:
        return ServiceRefusedError(
            "the object store refuses root's key: if compose/secrets/object-store-root is new, 'make down' and"
            f" 'make up' start the store with it; its error: {code}"
        )
    if code is None or code in _NOT_YET:
        return ServiceUnavailableError(f"the object store did not {what}: {error}")
    return ServiceRefusedError(f"the object store refuses to {what}: {error}")


def _code_of(error: Exception) -> str | None:
    """MinIO's code for an error, None if it has none.

    Two codes are in texts only (minio 7.2): the admin client keeps the server's response as a text, and MinIO has one
    code for all arguments that it rejects, such as a target that is not registered yet.
    """
    if isinstance(error, S3Error):
        return _NO_TARGET_YET if (error.message or "").startswith(_NO_SUCH_TARGET) else error.code
    stated = re.search(r'"Code":"(\w+)"', str(error))
    return stated[1] if stated else None
