"""The choice of the settings for the `best.cfg` of a task."""
