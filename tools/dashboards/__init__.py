"""Dashboards of Apache Superset, generated from the metrics contract, the tables of gold and the views."""
