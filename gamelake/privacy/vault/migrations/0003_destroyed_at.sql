ALTER TABLE erasures ADD COLUMN destroyed_at TEXT;
