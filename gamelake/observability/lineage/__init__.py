"""OpenLineage events of jobs and queries, and the graph that they give."""
