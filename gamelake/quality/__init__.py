"""Quality: the rules that rows must satisfy, their evaluation, checks of whole tables, and validation suites."""
