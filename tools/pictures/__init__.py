"""The pictures of the documents: pages of the platform as a browser shows them, and a command in a terminal."""
