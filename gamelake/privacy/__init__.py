"""Personal data: the vault, export, erasure, and the scan that proves an erasure."""
