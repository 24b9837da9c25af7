"""The growth of costs: the figures of docs/scaling.md, each module one of them."""
