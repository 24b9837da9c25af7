"""Restores two names that Superset 6.1 uses and NumPy 2 removed. Import this module before Superset.

Debian's Python is 3.13, for which NumPy 1 has no wheels. Drop this file when Superset supports NumPy 2.
"""

import numpy

for removed, present in {"product": numpy.prod, "NaN": numpy.nan}.items():
    if removed not in vars(numpy):
        setattr(numpy, removed, present)
