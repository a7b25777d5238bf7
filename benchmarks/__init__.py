"""The laboratory notebook: one folder for each experiment, with its scripts, results and tables.

Run a script from the root of the repository as `python -m benchmarks.EXPERIMENT.SCRIPT`.
"""
