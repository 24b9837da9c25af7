"""How long the worked questions take in Trino on the stack, over as many events as one cares to wait for.

It writes tables of its own beside the stack's, and takes them away again; it imports no test.
"""
