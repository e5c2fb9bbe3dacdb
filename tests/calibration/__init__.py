"""Tests of the calibration rules."""
