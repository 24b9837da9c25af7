"""Forgets a player: destroys the key and the personal data at once; on request takes the rows out of all tables too.

Prints one JSON document. What an earlier run left unfinished is finished first. Settings come from GAMELAKE_* variables
(docs/settings.md); docs/privacy.md says what is reached and what is not. Ends with 2 if there is no such player.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Failpoints
from gamelake.model.games import load_games
from gamelake.model.options import LineageOptions
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.job_flows import flow_of
from gamelake.privacy.erasure import ErasureEstimate, PlayerErasure, estimate_erasure
from gamelake.privacy.erasure_records import ErasureDone, ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.player_directory import IdentifiedPlayer, PlayerDirectory, UnknownPlayerError
from gamelake.privacy.settings import PlayerDataSettings
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.program import FAILED, OK, run, stop_event
from gamelake.storage.store import Store

_LEAST_GRACE_SECONDS = 60


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the job prints."""

    game: str
    pseudonyms: tuple[str, ...] = ()
    reach: Reach | None = None
    would: ErasureEstimate | None = None
    done: ErasureDone | None = None
    finished_before: tuple[str, ...] = ()


def main() -> int:
    """Forget, or say what would be forgotten."""
    arguments = _arguments()
    settings = PlayerDataSettings.from_env()
    stop = stop_event()
    vault = open_vault(settings.vault.access)
    forgetting = PlayerErasure(
        vault=vault,
        store=Store(settings.lakehouse.location),
        grace=timedelta(seconds=arguments.grace_seconds),
        wait=lambda time: not stop.wait(time.total_seconds()),
        failpoints=Failpoints(settings.kill),
    )
    try:
        persons = _sought(arguments, settings, forgetting)
    except UnknownPlayerError:
        # Perhaps it was this run that had begun, and died.
        finished = () if arguments.dry_run else forgetting.catch_up("")
        if not finished:
            raise
        return _print(_Result(game=arguments.game, finished_before=finished))
    else:
        return _forget(arguments, forgetting, persons, settings.lineage)
    finally:
        vault.close()


def _forget(
    arguments: argparse.Namespace,
    forgetting: PlayerErasure,
    persons: Sequence[IdentifiedPlayer],
    lineage: LineageOptions,
) -> int:
    reach = Reach.FILES if arguments.purge else Reach.ROWS if arguments.also_rows else Reach.VAULT
    pseudonyms = tuple(person.pseudonym for person in persons)
    result = _Result(game=arguments.game or "", pseudonyms=pseudonyms, reach=reach)
    if not persons:
        return _print(result)
    if arguments.dry_run or not arguments.yes:
        would = estimate_erasure(forgetting.store, forgetting.vault, persons, reach)
        if arguments.dry_run:
            return _print(msgspec.structs.replace(result, would=would))
        if not _confirmed(would):
            return FAILED
    request = ErasureRequest.new(arguments.by, result.game, pseudonyms, reach)
    # The keys go first, whatever else there is to do, and however long it takes.
    forgetting.begin(request)
    finished = forgetting.catch_up(request.run)
    done = forgetting.carry_out(request)
    if done and (flow := flow_of(done)):
        with lineage_emitter(lineage, "forget_player", forgetting.store.location) as told:
            told.emit(flow)
    return _print(msgspec.structs.replace(result, done=done, finished_before=finished)) if done else FAILED


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument(
        "--player", help="the game's own name for the player; - reads it from the input, where nobody sees it"
    )
    who.add_argument("--pseudonym", help="the player's name in the lake")
    who.add_argument("--sweep", action="store_true", help="take rows out again of all whose rows were taken out before")
    parser.add_argument("--game", help="the game's name in contracts/games.yaml")
    parser.add_argument("--also-rows", action="store_true", help="take the player's rows out of all tables")
    parser.add_argument(
        "--purge", action="store_true", help="--also-rows, and delete the files that older versions need"
    )
    parser.add_argument(
        "--grace-seconds", type=float, default=_LEAST_GRACE_SECONDS, help="how long a file is still read"
    )
    parser.add_argument("--force", action="store_true", help="allow a grace under 60 s: queries that run may fail")
    parser.add_argument("--by", default="operator", help="whose role asks, for the account; no person's name")
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would happen, and change nothing")
    parser.add_argument("--yes", action="store_true", help="don't ask")
    arguments = parser.parse_args()
    if arguments.grace_seconds < _LEAST_GRACE_SECONDS and not arguments.force:
        parser.error(f"--grace-seconds under {_LEAST_GRACE_SECONDS} breaks queries that run; --force says you know")
    if arguments.sweep == bool(arguments.game):
        parser.error("--game goes with --player and --pseudonym, and not with --sweep")
    if arguments.sweep and not (arguments.also_rows or arguments.purge):
        parser.error("--sweep takes rows out: say --also-rows or --purge")
    if not (arguments.yes or arguments.dry_run or (sys.stdin.isatty() and arguments.player != "-")):
        parser.error("nobody is there to ask: say --yes or --dry-run")
    return arguments


def _sought(
    arguments: argparse.Namespace, settings: PlayerDataSettings, forgetting: PlayerErasure
) -> Sequence[IdentifiedPlayer]:
    if arguments.sweep:
        return _swept(forgetting.store)
    if arguments.game not in {game.name for game in load_games(settings.games_file).games}:
        raise SettingsError(f"--game is '{arguments.game}', which {settings.games_file} lacks")
    persons = PlayerDirectory(forgetting.vault, VaultKeys.read(settings.vault.keys_file))
    if arguments.pseudonym:
        return [persons.by_pseudonym(arguments.game, arguments.pseudonym)]
    name = sys.stdin.readline().rstrip("\n") if arguments.player == "-" else arguments.player
    return [persons.by_name(arguments.game, name)]


def _swept(store: Store) -> Sequence[IdentifiedPlayer]:
    requests = [each for each in ErasureRecords(store).requests() if each.reach is not Reach.VAULT]
    pseudonyms = {pseudonym: each.game for each in requests for pseudonym in each.pseudonyms}
    return [IdentifiedPlayer(game, pseudonym, None) for pseudonym, game in sorted(pseudonyms.items())]


def _confirmed(would: ErasureEstimate) -> bool:
    print(msgspec.json.format(msgspec.json.encode(would)).decode(), file=sys.stderr)
    return input("This can't be undone. Type yes to go on: ").strip() == "yes"


def _print(result: _Result) -> int:
    print(msgspec.json.format(msgspec.json.encode(result)).decode())
    return OK


if __name__ == "__main__":
    run(main)
