"""One or two pipelines beside gold annotation: scores, confusion, calibration and every error."""
