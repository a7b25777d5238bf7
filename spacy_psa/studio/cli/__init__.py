"""The commands of the studio."""
