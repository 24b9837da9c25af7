"""What grows with what: the figures of docs/scaling.md, each module one of them."""
