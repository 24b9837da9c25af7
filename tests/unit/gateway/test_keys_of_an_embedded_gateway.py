"""An embedded gateway has a line for each key, as the stack has, for the shell commands of the documents."""

import re
import subprocess
from pathlib import Path

from tests.support.pages import snippets
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.simulator.game_sdks import read_credentials

BACKING = GatewayBackend(bootstrap_servers="127.0.0.1:1", registry_url="http://127.0.0.1:1", topic="events")


def test_the_command_of_the_page_finds_a_games_secret(tmp_path: Path) -> None:
    gateway = EmbeddedGateway(tmp_path, BACKING, ports=(1, 2))
    gateway.make_keys(["archery_duel", "kart_rumble"], 1_000_000)
    gateway.keep_keys(["archery_duel", "paper_planes"], 1_000_000)
    request = next(each.text for each in snippets("docs/gateway.md") if each.text.startswith("SECRET="))
    command = f'KEY=kart_rumble KEYS="{gateway.keys_file}"\n{request.splitlines()[0]}\nprintf %s "$SECRET"'

    found = subprocess.run(("/bin/bash", "-euc", command), capture_output=True, text=True, check=True).stdout

    credentials = read_credentials(gateway.keys_file)
    assert list(credentials) == ["archery_duel", "kart_rumble", "paper_planes"]
    assert re.fullmatch("[0-9a-f]{64}", found)
    assert found == credentials["kart_rumble"].secret
