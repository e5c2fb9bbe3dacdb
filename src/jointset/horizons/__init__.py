"""The next H rows: their law, a set for each step and one for all of them, and radii that know what is known when."""
