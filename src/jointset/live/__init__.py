"""What runs while readings come in: alarms, their ways out, and the service around them."""
