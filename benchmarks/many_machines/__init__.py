"""Annotation on many machines: what a core, a shard and the driver cost, and what follows."""
