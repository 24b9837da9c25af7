"""The micro-batch engine: sources, task, manifest, commit, checkpoint, one runner."""
