"""The command line `gamelake`: what an operator does most, on the running stack."""
