"""Missions of spacecraft from files: their tables, what is made of them, and what is shown of a flight."""
