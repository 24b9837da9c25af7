"""What things are: the games contract, errors, names and paths, failpoints. It imports no other package."""
