"""The registered architectures: functions from settings to thinc models."""
