"""The object store as its root user sees it: buckets over S3, users and policies over MinIO's admin API."""

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
from gamelake.storage.store import shared_credentials
from services.provision.declarations import Policy, TellsOf
from services.provision.provisioning import ServiceRefusedError, ServiceSilentError

ANSWER = timedelta(seconds=20)
_WRONG_KEY = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch"})
_NOT_YET = frozenset({"XMinioServerNotInitialized", "ServiceUnavailable", "SlowDown", "InternalError"})
# Whom buckets tell of new objects is there some seconds after the store is.
_NO_TARGET_YET = "A specified destination ARN does not exist"
_NO_SUCH_POLICY = "XMinioAdminNoSuchPolicy"
_NEW_OBJECTS = "s3:ObjectCreated:*"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundUser:
    """A user as the store has it."""

    policies: frozenset[str]
    is_enabled: bool


class ObjectStore:
    """A store whose buckets, users and policies can be seen and changed."""

    def __init__(self, endpoint: str, root: Credentials) -> None:
        parts = urlsplit(endpoint)
        self._host, self._secure = parts.netloc, parts.scheme == "https"
        # The clients' own pool tries for minutes; who waits and for how long is the caller's to say.
        self._http = PoolManager(timeout=Timeout(ANSWER.total_seconds()), retries=False)
        self._s3 = self._client(root)
        self._admin = MinioAdmin(
            endpoint=self._host,
            credentials=StaticProvider(root.access_key, root.secret_key),
            secure=self._secure,
            http_client=self._http,
        )

    def buckets(self) -> frozenset[str]:
        """The names of all buckets.

        Raises:
            ServiceSilentError: the store gave no answer, or is not ready yet.
            ServiceRefusedError: it does not know the root user, or another key.
        """
        return _asked("list buckets", lambda: frozenset(bucket.name for bucket in self._s3.list_buckets()))

    def create_bucket(self, name: str) -> None:
        """Make a bucket."""
        _asked(f"make the bucket {name}", lambda: self._s3.make_bucket(name))

    def keeps_versions(self, bucket: str) -> bool:
        """Whether the store keeps what is overwritten or deleted in a bucket."""
        return _asked("show versioning", lambda: self._s3.get_bucket_versioning(bucket).status == ENABLED)

    def keep_no_versions(self, bucket: str) -> None:
        """Keep nothing of what is overwritten or deleted from now on."""
        _asked("suspend versioning", lambda: self._s3.set_bucket_versioning(bucket, VersioningConfig(SUSPENDED)))

    def expires_days(self, bucket: str) -> int | None:
        """After how many days the objects of a bucket go by themselves, None if they stay."""
        found = _asked("show what expires", lambda: self._s3.get_bucket_lifecycle(bucket))
        ages = [rule.expiration.days for rule in found.rules if rule.expiration] if found else []
        return ages[0] if ages else None

    def let_expire(self, bucket: str, days: int) -> None:
        """Have the objects of a bucket go by themselves when they are so old."""
        rule = Rule(ENABLED, rule_id="expire", rule_filter=Filter(prefix=""), expiration=Expiration(days=days))
        _asked("let objects expire", lambda: self._s3.set_bucket_lifecycle(bucket, LifecycleConfig([rule])))

    def tells(self, bucket: str) -> TellsOf | None:
        """Whom a bucket tells of new objects, None if nobody."""
        found = _asked("show notifications", lambda: self._s3.get_bucket_notification(bucket))
        for each in found.queue_config_list or ():
            prefix = each.prefix_filter_rule.value if each.prefix_filter_rule else ""
            return TellsOf(target=str(each.queue).split(":")[-2], prefix=prefix)
        return None

    def tell_of(self, bucket: str, whom: TellsOf) -> None:
        """Have a bucket tell of new objects."""
        queue = QueueConfig(
            queue=f"arn:minio:sqs::{whom.target}:kafka",
            events=[_NEW_OBJECTS],
            config_id="new-objects",
            prefix_filter_rule=PrefixFilterRule(whom.prefix) if whom.prefix else None,
        )
        _asked(
            f"tell {whom.target} of new objects",
            lambda: self._s3.set_bucket_notification(bucket, NotificationConfig(queue_config_list=[queue])),
        )

    def policy(self, name: str) -> str | None:
        """The text of a policy, None if there is none."""
        try:
            return str(self._admin.policy_info(name))
        except MinioAdminException as error:
            if _code_of(error) == _NO_SUCH_POLICY:
                return None
            raise _classified("show a policy", error) from error

    def set_policy(self, policy: Policy) -> None:
        """Make a policy or replace it; who has it has the new one at once."""
        _asked(
            f"take policies/{policy.name}.json",
            lambda: self._admin.policy_add(policy.name, policy=json.loads(policy.text)),
        )

    def users(self) -> Mapping[str, FoundUser]:
        """All users but root, by their access keys."""
        answer = json.loads(_asked("list users", self._admin.user_list))
        return {
            key: FoundUser(
                frozenset(filter(None, found.get("policyName", "").split(","))), found["status"] == "enabled"
            )
            for key, found in answer.items()
        }

    def knows(self, key: Credentials) -> bool:
        """Whether the store takes this access key with this secret, whatever it then may do."""
        try:
            self._client(key).list_buckets()
        except S3Error as error:
            return error.code not in _WRONG_KEY
        except (HTTPError, ServerError, InvalidResponseError) as error:
            raise ServiceSilentError(f"the object store does not answer: {error}") from error
        return True

    def set_user(self, key: Credentials) -> None:
        """Make a user, or give it another secret; either way it may log in."""
        _asked(f"make the user {key.access_key}", lambda: self._admin.user_add(key.access_key, key.secret_key))

    def attach(self, user: str, policy: str) -> None:
        """Give a user the rights of a policy."""
        _asked(f"give {user} a policy", lambda: self._admin.attach_policy([policy], user=user))

    def detach(self, user: str, policy: str) -> None:
        """Take the rights of a policy from a user."""
        _asked(f"take a policy from {user}", lambda: self._admin.detach_policy([policy], user=user))

    def _client(self, key: Credentials) -> Minio:
        return Minio(
            self._host, key.access_key, key.secret_key, secure=self._secure, http_client=self._http, region="us-east-1"
        )


def read_key(file: Path) -> Credentials:
    """Read a key from an AWS credentials file.

    Raises:
        SettingsError: the file can't be read or holds no key; says nothing of what it holds.
    """
    try:
        key = shared_credentials(file, "default")
    except SettingsError as error:
        raise SettingsError(f"{file} holds no key of a [default] profile: run 'make up', which makes it") from error
    return Credentials(key["AWS_ACCESS_KEY_ID"], key["AWS_SECRET_ACCESS_KEY"])


def _asked(what: str, question: Callable[[], T]) -> T:
    try:
        return question()
    except (HTTPError, ServerError, InvalidResponseError, S3Error, MinioAdminException) as error:
        raise _classified(what, error) from error


def _classified(what: str, error: Exception) -> ServiceSilentError | ServiceRefusedError:
    code = _code_of(error)
    if code in _WRONG_KEY:
        return ServiceRefusedError(
            "the object store refuses root's key: if compose/secrets/object-store-root was made anew, 'make down' and"
            f" 'make up' start the store with it; it said: {code}"
        )
    if code is None or code in _NOT_YET or _NO_TARGET_YET in str(error):
        return ServiceSilentError(f"the object store did not {what}: {error}")
    return ServiceRefusedError(f"the object store refuses to {what}: {error}")


def _code_of(error: Exception) -> str | None:
    if isinstance(error, S3Error):
        return error.code
    # The admin client keeps what the server said in its text only.
    stated = re.search(r'"Code":"(\w+)"', str(error))
    return stated[1] if stated else None
