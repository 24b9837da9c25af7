"""Synchronizes PostgreSQL's roles and databases with `compose/postgres/databases.yaml`.

`python -m services.provision.databases`. It never deletes a database or a role; a role owns its database with
everything in it, and has no access to others.
"""

from pathlib import Path

from gamelake.model.credentials import ServerCredentials, read_credentials
from gamelake.model.errors import SettingsError
from gamelake.program import OK, run
from services.provision.declarations import DeclaredDatabases, Right, load_databases
from services.provision.postgres import PostgresAdmin
from services.provision.provisioning import ChangeLog, wait_for
from services.provision.settings import DatabasesSettings


def main() -> int:
    """Run once; 0 if PostgreSQL is as declared."""
    settings = DatabasesSettings.from_env()
    declared = load_databases(settings.file)
    roles = {
        each.name: _credentials(settings.secrets / f"postgres-{each.name}", each.name) for each in declared.databases
    }
    changes = ChangeLog("databases")
    with PostgresAdmin(settings.host, settings.superuser) as postgres:
        found = wait_for("postgres", postgres.databases, settings.patience)
        synchronize_roles(postgres, roles, changes)
        synchronize_databases(postgres, declared, found, changes)
    changes.close()
    return OK


def synchronize_roles(postgres: PostgresAdmin, roles: dict[str, ServerCredentials], changes: ChangeLog) -> None:
    """Create missing roles, update their passwords, and revoke attributes that an owner does not need."""
    found = postgres.roles()
    for name, role in roles.items():
        if name not in found:
            postgres.create_role(role)
            changes.note(f"created the role {name}")
        elif not postgres.knows(role):
            postgres.set_password(role)
            changes.note(f"the role {name} has a new password, from its secret")
        if found.get(name):
            postgres.make_ordinary(name)
            changes.note(f"the role {name} may no longer {', '.join(sorted(found[name]))}")


def synchronize_databases(
    postgres: PostgresAdmin, declared: DeclaredDatabases, found: dict[str, str], changes: ChangeLog
) -> None:
    """Create missing databases; each belongs to the role of its name, and no other role has access."""
    for name in (each.name for each in declared.databases):
        if name not in found:
            postgres.create_database(name)
            changes.note(f"created the database {name}")
        elif found[name] != name:
            postgres.give_database(name)
            changes.note(f"the database {name} is owned by the role {name} instead of {found[name]}")
        if given := postgres.give_what_is_in(name):
            changes.note(f"{given} objects in the database {name} are owned by the role {name} now")
    for name in postgres.open_to_everybody():
        postgres.close_to_others(name)
        changes.note(f"only the owner has access to the database {name} now")
    _synchronize_rights(postgres, declared, changes)
    for name in sorted(found.keys() - {each.name for each in declared.databases} - {"postgres"}):
        changes.skipped(f"the database {name}, which the file does not name")


def _synchronize_rights(postgres: PostgresAdmin, declared: DeclaredDatabases, changes: ChangeLog) -> None:
    for name in (each.name for each in declared.databases if Right.EMPTY_LOG in each.may):
        if not postgres.may_empty_log(name):
            postgres.let_empty_log(name)
            changes.note(f"the role {name} may switch the write-ahead log")


def _credentials(file: Path, name: str) -> ServerCredentials:
    found = read_credentials(file, "the role's secret")
    if found.username != name:
        raise SettingsError(f"'{file}' must have username={name}: remove it and run 'make up', which creates it again")
    return found


if __name__ == "__main__":
    run(main)
