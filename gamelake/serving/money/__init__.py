"""Money: daily exchange rates, which convert what players paid to US dollars."""
