"""Key performance indicators: one streaming aggregation by game and day."""
