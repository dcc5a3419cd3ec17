"""Hits for people and programs, the passages around them, and the prompt that asks again."""
