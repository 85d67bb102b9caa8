"""Honest timing: competitors in turn, ratios within rounds, and their bounds."""
