"""`POST /v1/events`: bodies in JSON and Protobuf become checked records."""
