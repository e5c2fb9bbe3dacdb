"""The algebra of laws: covariances, factors, gaps in them, pools, sizes and distances."""
