CREATE TABLE players (
    token       {bytes} PRIMARY KEY,
    game        TEXT NOT NULL,
    pseudonym   TEXT NOT NULL UNIQUE,
    key_id      TEXT NOT NULL,
    wrapped_key {bytes} NOT NULL
);
CREATE INDEX players_by_key ON players (key_id);
CREATE TABLE personal_data (
    pseudonym   TEXT NOT NULL REFERENCES players (pseudonym) ON DELETE CASCADE,
    fingerprint {bytes} NOT NULL,
    sealed      {bytes} NOT NULL,
    kept_at     TEXT NOT NULL,
    PRIMARY KEY (pseudonym, fingerprint)
);
CREATE TABLE erasures (
    number    {counter},
    game      TEXT NOT NULL,
    pseudonym TEXT NOT NULL,
    erased_at TEXT NOT NULL
);
