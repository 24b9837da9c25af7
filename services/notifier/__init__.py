"""Says which files are new in a folder, in the words of an object store: for a platform on one machine without one."""
