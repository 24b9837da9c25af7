"""Emits notifications of new files in a folder, in the object store's format: for a machine without an object store."""
