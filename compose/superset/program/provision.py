"""Prepares Superset's database at each start: its tables, roles, the people of access.yaml, and the dashboards' files.

Charts and dashboards that people added stay. Changes to those of a file are overwritten.
"""

import json
import logging
import secrets
import sys
from pathlib import Path

import numpy_names  # noqa: F401 # before Superset
from superset.app import create_app

logger = logging.getLogger("provision")
READER, BASE, ADMIN = "Gamelake", "Gamma", "Admin"


def prepare() -> None:
    """Run all steps in order; each can be repeated."""
    # Not at the top: Superset's modules read the settings of an app that exists.
    from flask_migrate import upgrade
    from superset.extensions import appbuilder, security_manager

    upgrade()
    appbuilder.add_permissions(update_perms=True)
    security_manager.sync_role_definitions()
    _update_people()
    _import_files()
    _update_reader()


def _people() -> dict[str, str]:
    from flask import current_app

    return json.loads(Path(current_app.config["USERS"]).read_text(encoding="utf-8"))


def _role(name: str) -> object:
    from superset.extensions import security_manager

    return security_manager.find_role(name) or security_manager.add_role(name)


def _roles_of_person(name: str) -> list:
    return [_role(each) for each in ([ADMIN] if name == ADMIN else [BASE, READER])]


def _update_people() -> None:
    from superset.extensions import db, security_manager

    people = _people()
    for name, role in people.items():
        user, roles = security_manager.find_user(username=name), _roles_of_person(role)
        if user is None:
            # Superset never reads this password: it compares with Trino's hashes (superset_config.py).
            unknown = secrets.token_hex(24)
            user = security_manager.add_user(name, name, "Gamelake", f"{name}@gamelake.invalid", roles, unknown)
        user.active, user.roles = True, roles
    for user in security_manager.get_all_users():
        user.active = user.username in people
    db.session.commit()


def _update_reader() -> None:
    """Let the role read all datasets: Trino decides which rows and columns a person sees."""
    from superset.extensions import db, security_manager
    from superset.models.core import Database

    for database in db.session.query(Database):
        permission = security_manager.add_permission_view_menu("database_access", database.perm)
        security_manager.add_permission_role(_role(READER), permission)


def _import_files() -> None:
    """Write the files' database, datasets, charts and dashboards as an administrator, without a query to Trino.

    This skips two steps of Superset's import. It lists all schemas for permissions, which the one on the database
    replaces. It looks up each table, which only files with data need.
    """
    from flask import current_app
    from superset.commands.database.importers.v1 import utils
    from superset.commands.importers.v1.assets import ImportAssetsCommand
    from superset.extensions import security_manager
    from superset.models.core import Database
    from superset.utils.core import override_user

    administrators = [name for name, role in _people().items() if role == ADMIN]
    if not administrators:
        sys.exit("provision: Superset has no administrator: give a person the right stop_queries in access.yaml")
    folder = Path(current_app.config["ASSETS"])
    contents = {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.yaml"))
    }
    utils.add_permissions = lambda _database: None
    Database.has_table = lambda *_arguments: True
    with override_user(security_manager.find_user(username=administrators[0])):
        ImportAssetsCommand(contents).run()
    logger.info("imported %s files of dashboards", len(contents))


if __name__ == "__main__":
    with create_app().app_context():
        prepare()
