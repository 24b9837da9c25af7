"""A lakehouse that lives a year: 600,000 commits to 33 tables with scheduled maintenance, to see what grows with it."""
