CREATE TABLE players (
    token       {bytes} PRIMARY KEY CHECK (length(token) <= 64),
    game        TEXT NOT NULL CHECK (length(game) <= 256),
    pseudonym   TEXT NOT NULL UNIQUE CHECK (length(pseudonym) <= 64),
    key_id      TEXT NOT NULL CHECK (length(key_id) <= 256),
    wrapped_key {bytes} NOT NULL CHECK (length(wrapped_key) <= 256)
);
CREATE INDEX players_by_key ON players (key_id);
CREATE TABLE personal_data (
    pseudonym   TEXT NOT NULL REFERENCES players (pseudonym) ON DELETE CASCADE,
    fingerprint {bytes} NOT NULL CHECK (length(fingerprint) <= 64),
    sealed      {bytes} NOT NULL CHECK (length(sealed) <= {most_sealed}),
    kept_at     TEXT NOT NULL,
    PRIMARY KEY (pseudonym, fingerprint)
);
CREATE TABLE erasures (
    number       {counter},
    game         TEXT NOT NULL,
    pseudonym    TEXT NOT NULL,
    erased_at    TEXT NOT NULL,
    erased_by    TEXT NOT NULL,
    destroyed_at TEXT
);
CREATE TABLE used_signatures (
    signature  {bytes} PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_signatures_by_expiry ON used_signatures (expires_at);
