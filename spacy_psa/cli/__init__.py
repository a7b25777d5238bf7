"""The commands of the library: each reads its arguments, calls a function and prints."""
