"""What comes in: readings, times, graphs and sensors, read, checked and watched."""
