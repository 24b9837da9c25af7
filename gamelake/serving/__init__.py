"""What is served from silver: gold, KPIs, live operations, SQL."""
