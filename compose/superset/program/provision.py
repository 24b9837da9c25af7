"""Prepares Superset's database at each start: its tables, roles, the people of access.yaml, and the dashboards' files.

What people have added stays; what they have changed in a chart or dashboard of a file is written again.
"""

import json
import logging
import secrets
from pathlib import Path

import numpy_names  # noqa: F401 # before Superset
from superset.app import create_app

logger = logging.getLogger("provision")
READER, BASE, ADMIN = "Gamelake", "Gamma", "Admin"
ADMINISTRATOR_OF_FILES = "engineer"


def prepare() -> None:
    """Apply all steps in their order; each can be repeated."""
    # Superset's modules read the settings of an app that exists.
    from flask_migrate import upgrade
    from superset.extensions import appbuilder, security_manager

    upgrade()
    appbuilder.add_permissions(update_perms=True)
    security_manager.sync_role_definitions()
    _import_files()
    _update_reader()
    _update_people()


def _people() -> dict[str, str]:
    from flask import current_app

    return json.loads(Path(current_app.config["USERS"]).read_text(encoding="utf-8"))


def _roles(name: str) -> list:
    from superset.extensions import security_manager

    names = [ADMIN] if name == ADMIN else [BASE, READER]
    return [security_manager.find_role(each) or security_manager.add_role(each) for each in names]


def _update_people() -> None:
    from superset.extensions import db, security_manager

    people = _people()
    for name, role in people.items():
        user = security_manager.find_user(username=name)
        if user is None:
            # Superset compares passwords with Trino's hashes (superset_config.py), and never reads this one.
            unknown = secrets.token_hex(24)
            user = security_manager.add_user(name, name, "Gamelake", f"{name}@gamelake.invalid", _roles(role), unknown)
        user.active, user.roles = True, _roles(role)
    for user in security_manager.get_all_users():
        user.active = user.username in people
    db.session.commit()


def _update_reader() -> None:
    """Let the role see all datasets: Trino decides which rows and columns a person reads."""
    from superset.extensions import db, security_manager
    from superset.models.core import Database

    (reader,) = [role for role in _roles(READER) if role.name == READER]
    for database in db.session.query(Database):
        permission = security_manager.add_permission_view_menu("database_access", database.perm)
        security_manager.add_permission_role(reader, permission)


def _import_files() -> None:
    """Write the files' database, datasets, charts and dashboards, without asking Trino.

    Superset would list all schemas, for permissions that the one on the database replaces, and look each table up, for
    files that bring data along.
    """
    from flask import current_app
    from superset.commands.database.importers.v1 import utils
    from superset.commands.importers.v1.assets import ImportAssetsCommand
    from superset.extensions import security_manager
    from superset.models.core import Database
    from superset.utils.core import override_user

    user = security_manager.find_user(username=ADMINISTRATOR_OF_FILES)
    if user is None:
        _update_people()
        user = security_manager.find_user(username=ADMINISTRATOR_OF_FILES)
    folder = Path(current_app.config["ASSETS"])
    contents = {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.yaml"))
    }
    utils.add_permissions = lambda _database: None
    Database.has_table = lambda *_arguments: True
    with override_user(user):
        ImportAssetsCommand(contents).run()
    logger.info("imported %s files of dashboards", len(contents))


if __name__ == "__main__":
    with create_app().app_context():
        prepare()
