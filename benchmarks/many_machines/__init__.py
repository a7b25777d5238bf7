"""Annotation on many machines: the cost of a core, a shard and the driver."""
