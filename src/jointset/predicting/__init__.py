"""What a predictor does, each in its module: fitting, calibrating, runs, gaps, sensors that come and go, words."""
