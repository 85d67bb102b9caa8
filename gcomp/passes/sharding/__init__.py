"""Passes for programs on several devices."""
