"""A PostgreSQL as a child process, from the programs that Debian's packages install."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from gamelake.model.credentials import ServerCredentials
from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.process import Program, ServiceError, ServiceMissingError
from tools.embedded.service import EmbeddedService

_DEBIANS = Path("/usr/lib/postgresql")
_SUPERUSER = "postgres"
# PostgreSQL refuses to run as root: then it runs as the first of these users that exists.
_OTHERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "40",
    # Old files of the write-ahead log are deleted and not reused, so that erased data does not stay in them.
    "wal_recycle": "off",
}


class EmbeddedPostgres(EmbeddedService):
    """PostgreSQL on this machine; databases are in `directory`, which every user must be able to enter."""

    name = "PostgreSQL"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port = free_port()
        self._password = secrets.token_hex(16)

    @property
    def data(self) -> Path:
        """The folder of the server's files."""
        return self.directory / "data"

    def uri(self, database: str) -> str:
        """Return the address of a database, without user and password."""
        return f"postgresql://{HOST}:{self._port}/{database}?sslmode=disable"

    def program(self) -> Program:
        """Create the cluster if there is none, and describe the process."""
        if not self.data.exists():
            self._make_cluster()
        settings = [f"--{name}={value}" for name, value in (_SETTINGS | {"port": str(self._port)}).items()]
        command = (*_as_ordinary_user(), str(_programs() / "postgres"), "-D", str(self.data), *settings)
        return Program(name=self.name, command=command, log_file=self.directory / "postgres.log")

    def is_healthy(self) -> bool:
        """Return True if the server accepts connections."""
        if not accepts_connections(self._port):
            return False
        try:
            self._superuser("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill the server and all its processes, as in a crash of the machine."""
        processes = self._processes()
        super().kill()
        for process in processes[1:]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        # The file names a process that is dead or not reaped yet; a new server would not start with it.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """Stop all processes (SIGSTOP): connections hang until `resume`."""
        for process in self._processes():
            os.kill(process, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue all processes (SIGCONT)."""
        for process in self._processes():
            os.kill(process, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The server's processes; the first of them starts the others."""
        server = self.process.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii")
        return [server, *map(int, children.split())]

    def make_database(self, name: str) -> ServerCredentials:
        """Create a database and a role of the same name, with the rights that roles have in the stack."""
        owner = ServerCredentials(name, secrets.token_hex(16))
        role = sql.Identifier(name)
        with self._superuser("postgres") as connection:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, owner.password))
            connection.execute(sql.SQL("GRANT pg_checkpoint TO {}").format(role))
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
        with self._superuser(name) as connection:
            connection.execute(sql.SQL("GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {}").format(role))
        return owner

    def drop_database(self, name: str) -> None:
        """Drop a database and its role, even while clients are connected."""
        with self._superuser("postgres") as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))

    def _superuser(self, database: str) -> psycopg.Connection:
        parameters: dict[str, str | int | None] = {
            "user": _SUPERUSER,
            "password": self._password,
            "connect_timeout": 2,
            "gssencmode": "disable",
        }
        return psycopg.connect(make_conninfo(self.uri(database), **parameters), autocommit=True)

    def _make_cluster(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        password_file = self.directory / "superuser"
        password_file.write_text(self._password)
        if os.geteuid() == 0:
            for path in (self.directory, password_file):
                shutil.chown(path, _ordinary_user())
        initdb = (str(_programs() / "initdb"), "-D", str(self.data), "--username", _SUPERUSER)
        options = ("--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync")
        outcome = subprocess.run(
            (*_as_ordinary_user(), *initdb, *options), capture_output=True, text=True, check=False, cwd="/"
        )
        if outcome.returncode != 0:
            raise ServiceError(f"PostgreSQL could not make its cluster:\n{outcome.stdout}{outcome.stderr}")


def _programs() -> Path:
    """The folder of the server's programs; the newest version if there are several."""
    found = sorted(_DEBIANS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise ServiceMissingError("PostgreSQL's programs are not on this machine: install Debian's package postgresql")
    return Path(on_path).resolve().parent


def _as_ordinary_user() -> tuple[str, ...]:
    """The prefix for a command that must not run as root."""
    if os.geteuid() != 0:
        return ()
    # A change of user clears the signal at the parent's death, so it is set again.
    return ("setpriv", f"--reuid={_ordinary_user()}", "--regid=nogroup", "--clear-groups", "--pdeathsig=KILL")


def _ordinary_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _OTHERS if name in known)
