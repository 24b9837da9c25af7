"""The MCP server: agents ask about metrics and tables in Trino with the rights of the user who starts it."""
