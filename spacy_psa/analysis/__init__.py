"""Analyses of trained pipelines: attention, ablation, reliability and temperature."""
