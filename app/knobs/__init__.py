"""What a user may turn: one table, under the engines' own names."""
