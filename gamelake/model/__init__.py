"""The terms of the platform: errors, names and paths, log events, failpoints. It imports no other package."""
