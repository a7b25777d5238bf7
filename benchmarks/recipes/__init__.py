"""Which settings the `best.cfg` of a task should take."""
