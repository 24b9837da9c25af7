"""A vault and a lakehouse with two players, and the jobs about personal data as processes."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from gamelake.delta.tables import DeltaTables
from gamelake.model.failpoints import Failpoint
from gamelake.objects.store import Store
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import SealedData, StoredPlayer
from gamelake.schemas.event_schemas import load_schema
from tests.support.player_tables import BRONZE, SILVER, append, store_in
from tests.support.vault_keys import key_file

ROOT = Path(__file__).parents[3]
GAME = "kart_rumble"
GAMES = "games: [{name: kart_rumble, match: [Kart]}, {name: archery, match: [Archery]}]\n"


@dataclass(frozen=True, slots=True)
class PrivacyJobs:
    """The folder of a vault and a lakehouse, and the jobs that run on them."""

    folder: Path
    keys: VaultKeys

    @classmethod
    def furnish(cls, folder: Path) -> "PrivacyJobs":
        """Write the keys and the contract."""
        (folder / "games.yaml").write_text(GAMES)
        (folder / "submitted").symlink_to(ROOT / "contracts/submitted")
        return cls(folder, VaultKeys.read(key_file(folder)))

    @property
    def store(self) -> Store:
        return store_in(self.folder / "lake")

    @property
    def vault(self) -> SqliteVault:
        return SqliteVault(self.folder / "vault.db")

    def add_player(self, name: str, *mails: str) -> str:
        """Add a player with some data to the vault. Return the pseudonym."""
        key, token = PlayerKey.new(GAME), self.keys.token(GAME, name)
        event = GetMessageClass(load_schema(ROOT / "contracts/submitted/v4", 4).message)
        vault = self.vault
        vault.add(
            [
                StoredPlayer(
                    token=token,
                    game=GAME,
                    pseudonym=key.pseudonym,
                    key_id=self.keys.current,
                    wrapped_key=self.keys.wrap(key, token),
                )
            ]
        )
        data = [event(personal={"email": mail}).SerializeToString() for mail in mails]
        vault.keep(
            [SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(d), sealed=key.seal(d)) for d in data]
        )
        vault.close()
        return key.pseudonym

    def fill_tables(self, *players: str) -> None:
        """Two batches in silver and bronze, with two rows of each player in each."""
        store = self.store
        with DeltaTables(store.location) as tables:
            for table in (SILVER, BRONZE):
                for batch in range(2):
                    append(tables, store, table, batch, [*players, *players])

    def run(
        self, *arguments: str, job: str = "forget_player", kill: Failpoint | None = None, reported: str = ""
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "GAMELAKE_LAKEHOUSE": f"file://{self.folder}/lake",
            "GAMELAKE_VAULT": str(self.folder / "vault.db"),
            "GAMELAKE_VAULT_KEYS_FILE": str(self.folder / "vault-keys.yaml"),
            "GAMELAKE_GAMES_FILE": str(self.folder / "games.yaml"),
            "GAMELAKE_FAILPOINT": str(kill) if kill else "",
        }
        command = [sys.executable, "-m", f"jobs.{job}", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, input=reported, capture_output=True, text=True, timeout=60, check=False
        )

    def result(self, *arguments: str, **options: Any) -> Any:  # noqa: ANN401 # a job's JSON
        """What a job that ends well prints."""
        ended = self.run(*arguments, **options)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def killed(self, *arguments: str, at: Failpoint) -> None:
        """Run the job until it is killed at a step."""
        assert self.run(*arguments, kill=at).returncode == -signal.SIGKILL
