"""Writes the reference pages of the documentation from the installed package."""
