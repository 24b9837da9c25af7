"""Backup and restore of the data outside of the tables: state of the streams, registry, vault, topics.

It uses the public interface of each of them, and does not know what the events mean.
"""
