"""The audit service: copies the audit's topics into tables that only it can change, and deletes old days."""
