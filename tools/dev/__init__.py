"""`make dev`: the platform without Docker, as processes that run until Ctrl-C, with their data under build/dev."""
