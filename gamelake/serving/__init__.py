"""Everything served from silver: gold tables, KPIs, live operations and SQL."""
