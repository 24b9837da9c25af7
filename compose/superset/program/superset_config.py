"""Superset's settings in the stack. Passwords come from the secrets' files; Superset's database stores none."""

import hashlib
import hmac
import json
import os
from pathlib import Path

from sqlalchemy.engine import URL
from superset.config import TALISMAN_CONFIG as DEFAULT_TALISMAN
from superset.security import SupersetSecurityManager
from trino.auth import BasicAuthentication

# Paths in the image; a trial without a container overrides them.
SECRETS = Path(os.environ.get("SUPERSET_SECRETS", "/run/secrets"))
ASSETS = Path(os.environ.get("SUPERSET_ASSETS", "/opt/superset/assets"))
USERS = Path(os.environ.get("SUPERSET_USERS", "/opt/superset/users.json"))


def _bare(name: str) -> str:
    return (SECRETS / name).read_text(encoding="utf-8").strip()


def _password(name: str) -> str:
    lines = _bare(name).splitlines()
    return dict(line.split("=", 1) for line in lines)["password"]


def trino_connection(uri: URL, options: dict, _username: str, _manager: object, _source: object) -> tuple[URL, dict]:
    """Add the password of Trino's user `superset`, who queries as the person who is logged in."""
    if uri.get_backend_name() == "trino":
        arguments = options.setdefault("connect_args", {})
        arguments["auth"] = BasicAuthentication("superset", _password("trino-superset"))
        arguments["verify"] = str(SECRETS / "tls-ca")
    return uri, options


class StackSecurityManager(SupersetSecurityManager):
    """Checks a password against Trino's file of hashes, so that a person has one password for both."""

    def auth_user_db(self, username: str, password: str) -> object:
        """Return the user with this name and password, or None."""
        user = self.find_user(username=username) if username else None
        known = user is not None and user.is_active and username in json.loads(USERS.read_text(encoding="utf-8"))
        # An unknown name takes as long as a known one.
        is_right = _verifies(username if known else "", password or "")
        if not known:
            return None
        self.update_user_auth_stat(user, is_right)
        return user if is_right else None


def _verifies(username: str, password: str) -> bool:
    expected = {
        name: rest for name, _, rest in (line.partition(":") for line in _bare("trino-password-hashes").splitlines())
    }
    iterations, salt, known = expected.get(username, f"100000:{'00' * 16}:{'00' * 20}").split(":")
    found = hashlib.pbkdf2_hmac("sha1", password.encode(), bytes.fromhex(salt), int(iterations), len(known) // 2)
    return hmac.compare_digest(found.hex(), known) and username in expected


SECRET_KEY = _bare("superset-key")
# psycopg2 finds the password in PGPASSFILE, and the authority in PGSSLROOTCERT.
SQLALCHEMY_DATABASE_URI = os.environ.get("SUPERSET_DATABASE", "postgresql+psycopg2://superset@postgres:5432/superset")
# Threads of the one worker; PostgreSQL accepts 40 connections for all services.
SQLALCHEMY_ENGINE_OPTIONS = {"pool_size": 4, "max_overflow": 4, "pool_pre_ping": True, "pool_recycle": 900}

AUTH_ROLE_ADMIN = "Admin"
CUSTOM_SECURITY_MANAGER = StackSecurityManager
DB_CONNECTION_MUTATOR = trino_connection
# Results depend on the person, so they are not cached. If you add a cache, its keys include the person.
CACHE_CONFIG = DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}
FEATURE_FLAGS = {
    "CACHE_IMPERSONATION": True,
    "CACHE_QUERY_BY_USER": True,
    "DASHBOARD_RBAC": False,
    "ALERT_REPORTS": False,
}

SESSION_COOKIE_SECURE = True
SESSION_COOKIE_SAMESITE = "Lax"
# Slows down guessing of passwords.
RATELIMIT_ENABLED = True
RATELIMIT_STORAGE_URI = "memory://"
RATELIMIT_APPLICATION = "1000 per second"
# Superset's default also allows maps and pictures of other hosts.
TALISMAN_CONFIG = {
    **DEFAULT_TALISMAN,
    "content_security_policy": {
        **DEFAULT_TALISMAN["content_security_policy"],
        "img-src": ["'self'", "blob:", "data:"],
        "connect-src": ["'self'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "font-src": ["'self'"],
    },
    "session_cookie_secure": True,
}
APP_NAME = "Gamelake"
ROW_LIMIT = 10_000
SUPERSET_WEBSERVER_TIMEOUT = 120
# Its logs are the container's.
SILENCE_FAB = True
ALEMBIC_SKIP_LOG_CONFIG = True
