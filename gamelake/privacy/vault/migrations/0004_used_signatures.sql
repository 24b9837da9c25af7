CREATE TABLE used_signatures (
    signature  {bytes} PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_signatures_by_expiry ON used_signatures (expires_at);
