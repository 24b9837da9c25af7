"""SQL that assigns players to variants exactly as the SDK does (`services/sdk/experiments.py`).

A player's bucket is the first four bytes of SHA-256 of `<salt>/<purpose>/<player>`, as a big-endian number, modulo
10,000. The player is the game's own name of the player, before the gateway replaces it by a pseudonym. Tables hold
pseudonyms: over tables, take a player's variant from the exposures.
"""

from enum import StrEnum

from gamelake.contract.experiments import BUCKETS, ExperimentSpec, in_buckets

ENROLMENT, VARIANT = "enrolment", "variant"


class HashDialect(StrEnum):
    """Engines that can compute buckets."""

    DUCKDB = "duckdb"
    TRINO = "trino"


_NUMBER = {
    HashDialect.DUCKDB: "CAST('0x' || substr(sha256({0}), 1, 8) AS BIGINT)",
    HashDialect.TRINO: "from_base(substr(lower(to_hex(sha256(to_utf8({0})))), 1, 8), 16)",
}


def bucket_sql(salt: str, purpose: str, player: str, dialect: HashDialect) -> str:
    """Return a player's bucket, 0 to 9,999, as SQL.

    Args:
        salt: the experiment's salt.
        purpose: `ENROLMENT` or `VARIANT`; the two buckets of a player are independent.
        player: the SQL of the game's own name of the player.
        dialect: the engine.
    """
    number = _NUMBER[dialect].format(f"'{salt}/{purpose}/' || {player}")
    return f"({number} % {BUCKETS})"


def variant_sql(experiment: ExperimentSpec, player: str, dialect: HashDialect) -> str:
    """Return a player's variant as SQL; null if the player is not enrolled. Conditions on platform etc. are left out.

    Args:
        experiment: the experiment.
        player: the SQL of the game's own name of the player.
        dialect: the engine.
    """
    enrolment, variant = (bucket_sql(experiment.seed, each, player, dialect) for each in (ENROLMENT, VARIANT))
    cases, end = [f"WHEN {enrolment} >= {in_buckets(experiment.eligibility.share)} THEN NULL"], 0
    for each in experiment.variants:
        end += in_buckets(each.share)
        cases.append(f"WHEN {variant} < {end} THEN '{each.name}'")
    return f"CASE {' '.join(cases)} END"
