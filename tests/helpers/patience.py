"""How long a test waits for what should happen soon."""

PATIENCE = 300.0
"""Seconds. A busy machine is slow, and a virtual one may stand still for a minute."""
