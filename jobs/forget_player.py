"""Erases a player: destroys the key and the personal data at once; on request deletes the rows in all tables too.

Prints one JSON document. An unfinished earlier run is finished first. Then it searches all tables for the pseudonym,
and exits with 1 if it finds it. Settings come from GAMELAKE_* variables (docs/settings.md); docs/privacy.md describes
what an erasure reaches. Exits with 2 if there is no such player.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.contract.games import load_games
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Failpoints
from gamelake.model.options import LineageOptions
from gamelake.objects.store import Store
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.job_flows import flow_of
from gamelake.privacy.erasure import ErasureEstimate, PlayerErasure, estimate_erasure
from gamelake.privacy.erasure_records import ErasureDone, ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.player_directory import IdentifiedPlayer, PlayerDirectory, UnknownPlayerError
from gamelake.privacy.settings import PlayerDataSettings
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.program import FAILED, run, stop_event

_LEAST_GRACE_SECONDS = 60


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON document that the job prints."""

    game: str
    pseudonyms: tuple[str, ...] = ()
    reach: Reach | None = None
    would: ErasureEstimate | None = None
    done: ErasureDone | None = None
    finished_before: tuple[str, ...] = ()


def main() -> int:
    """Erase, or print the dry run."""
    arguments = _arguments()
    settings = PlayerDataSettings.from_env()
    stop = stop_event()
    vault = open_vault(settings.vault.access)
    erasure = PlayerErasure(
        vault=vault,
        store=Store(settings.lakehouse.location),
        grace=timedelta(seconds=arguments.grace_seconds),
        wait=lambda time: not stop.wait(time.total_seconds()),
        failpoints=Failpoints(settings.kill),
    )
    try:
        players = _find(arguments, settings, erasure)
    except UnknownPlayerError:
        # An earlier run may have erased the player in the vault, and been killed.
        finished = () if arguments.dry_run else erasure.catch_up("")
        if not finished:
            raise
        return print_result(_Result(game=arguments.game, finished_before=finished))
    else:
        return _erase(arguments, erasure, players, settings.lineage)
    finally:
        vault.close()


def _erase(
    arguments: argparse.Namespace,
    erasure: PlayerErasure,
    players: Sequence[IdentifiedPlayer],
    lineage: LineageOptions,
) -> int:
    reach = Reach.FILES if arguments.purge else Reach.ROWS if arguments.also_rows else Reach.VAULT
    pseudonyms = tuple(player.pseudonym for player in players)
    result = _Result(game=arguments.game or "", pseudonyms=pseudonyms, reach=reach)
    if not players:
        return print_result(result)
    if arguments.dry_run or not arguments.yes:
        would = estimate_erasure(erasure.store, erasure.vault, players, reach)
        if arguments.dry_run:
            return print_result(msgspec.structs.replace(result, would=would))
        if not is_confirmed("This can't be undone. Erase the player?", would):
            return FAILED
    request = ErasureRequest.new(arguments.by, result.game, pseudonyms, reach)
    # Destroy the keys first: the rest may take long.
    erasure.begin(request)
    finished = erasure.catch_up(request.run)
    done = erasure.carry_out(request)
    if done and (flow := flow_of(done)):
        with lineage_emitter(lineage, "forget_player", erasure.store.location) as emitter:
            emitter.emit(flow)
    if done is None:
        return FAILED
    printed = print_result(msgspec.structs.replace(result, done=done, finished_before=finished))
    return FAILED if done.left else printed


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    player = parser.add_mutually_exclusive_group(required=True)
    player.add_argument(
        "--player",
        help="the game's own name for the player; - reads it from standard input, which other users can't see",
    )
    player.add_argument("--pseudonym", help="the player's pseudonym in the tables")
    player.add_argument(
        "--sweep", action="store_true", help="delete rows of all players again whose rows were deleted before"
    )
    parser.add_argument("--game", help="the game's name in contracts/games.yaml")
    parser.add_argument("--also-rows", action="store_true", help="delete the player's rows in all tables")
    parser.add_argument(
        "--purge", action="store_true", help="--also-rows, and delete the files of older versions that have such rows"
    )
    parser.add_argument(
        "--grace-seconds",
        type=float,
        default=_LEAST_GRACE_SECONDS,
        help="how long readers may still need a removed file",
    )
    parser.add_argument("--force", action="store_true", help="allow a grace under 60 s: running queries may fail")
    parser.add_argument(
        "--by", default="operator", help="the role that requests it, for the record; not a person's name"
    )
    add_confirmation(parser, "print what would be deleted, and change nothing")
    arguments = parser.parse_args()
    if arguments.grace_seconds < _LEAST_GRACE_SECONDS and not arguments.force:
        parser.error(f"--grace-seconds under {_LEAST_GRACE_SECONDS} breaks running queries; use --force to allow it")
    if arguments.sweep == bool(arguments.game):
        parser.error("--game is required with --player and --pseudonym, and excludes --sweep")
    if arguments.sweep and not (arguments.also_rows or arguments.purge):
        parser.error("--sweep requires --also-rows or --purge")
    require_answer(parser, arguments, reads_input=arguments.player == "-")
    return arguments


def _find(
    arguments: argparse.Namespace, settings: PlayerDataSettings, erasure: PlayerErasure
) -> Sequence[IdentifiedPlayer]:
    if arguments.sweep:
        return _swept(erasure.store)
    if arguments.game not in {game.name for game in load_games(settings.games_file).games}:
        raise SettingsError(f"--game is '{arguments.game}', which {settings.games_file} lacks")
    directory = PlayerDirectory(erasure.vault, VaultKeys.read(settings.vault.keys_file))
    if arguments.pseudonym:
        return [directory.by_pseudonym(arguments.game, arguments.pseudonym)]
    name = sys.stdin.readline().rstrip("\n") if arguments.player == "-" else arguments.player
    return [directory.by_name(arguments.game, name)]


def _swept(store: Store) -> Sequence[IdentifiedPlayer]:
    requests = [each for each in ErasureRecords(store).requests() if each.reach is not Reach.VAULT]
    pseudonyms = {pseudonym: each.game for each in requests for pseudonym in each.pseudonyms}
    return [IdentifiedPlayer(game, pseudonym, None) for pseudonym, game in sorted(pseudonyms.items())]


if __name__ == "__main__":
    run(main)
