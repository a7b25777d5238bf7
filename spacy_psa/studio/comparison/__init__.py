"""Pipelines compared with gold annotation: scores, confusion, calibration and every error."""
