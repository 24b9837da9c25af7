"""Brings PostgreSQL's roles and databases in line with `compose/postgres/databases.yaml`.

`python -m services.provision.databases`. No database and no role is ever deleted; a role owns its database, with all
that is in it, and gets into no other.
"""

from pathlib import Path

from gamelake.model.credentials import ServerCredentials, read_credentials
from gamelake.model.errors import SettingsError
from gamelake.program import OK, run
from services.provision.declarations import DeclaredDatabases, Right, load_databases
from services.provision.postgres import Postgres
from services.provision.provisioning import Changes, wait_for
from services.provision.settings import DatabasesSettings


def main() -> int:
    """Run once; 0 when PostgreSQL is as declared."""
    settings = DatabasesSettings.from_env()
    declared = load_databases(settings.file)
    roles = {
        each.name: _credentials(settings.secrets / f"postgres-{each.name}", each.name) for each in declared.databases
    }
    changes = Changes("databases")
    with Postgres(settings.host, settings.superuser) as postgres:
        found = wait_for("postgres", postgres.databases, settings.patience)
        bring_roles_in_line(postgres, roles, changes)
        bring_databases_in_line(postgres, declared, found, changes)
    changes.close()
    return OK


def bring_roles_in_line(postgres: Postgres, roles: dict[str, ServerCredentials], changes: Changes) -> None:
    """Make the roles that are missing, bring their passwords up to date, take from them what no owner needs."""
    found = postgres.roles()
    for name, role in roles.items():
        if name not in found:
            postgres.create_role(role)
            changes.note(f"made the role {name}")
        elif not postgres.knows(role):
            postgres.set_password(role)
            changes.note(f"the role {name} has the password of its secret now")
        if found.get(name):
            postgres.make_ordinary(name)
            changes.note(f"the role {name} may no more {', '.join(sorted(found[name]))}")


def bring_databases_in_line(
    postgres: Postgres, declared: DeclaredDatabases, found: dict[str, str], changes: Changes
) -> None:
    """Make the databases that are missing; each is its own role's, and closed to all others."""
    for name in (each.name for each in declared.databases):
        if name not in found:
            postgres.create_database(name)
            changes.note(f"made the database {name}")
        elif found[name] != name:
            postgres.give_database(name)
            changes.note(f"the database {name} is the role's of its name instead of {found[name]}'s")
        if given := postgres.give_what_is_in(name):
            changes.note(f"{given} things in the database {name} are the role's of its name now")
    for name in postgres.open_to_everybody():
        postgres.close_to_others(name)
        changes.note(f"the database {name} is closed to all but its owner")
    _bring_rights_in_line(postgres, declared, changes)
    for name in sorted(found.keys() - {each.name for each in declared.databases} - {"postgres"}):
        changes.left_alone(f"the database {name}, which the file does not name")


def _bring_rights_in_line(postgres: Postgres, declared: DeclaredDatabases, changes: Changes) -> None:
    for name in (each.name for each in declared.databases if Right.EMPTY_LOG in each.may):
        if not postgres.may_empty_log(name):
            postgres.let_empty_log(name)
            changes.note(f"the role {name} may empty the server's log")


def _credentials(file: Path, name: str) -> ServerCredentials:
    found = read_credentials(file, "the role's secret")
    if found.username != name:
        raise SettingsError(f"'{file}' must say username={name}: remove it and run 'make up', which makes it again")
    return found


if __name__ == "__main__":
    run(main)
