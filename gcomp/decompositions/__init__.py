"""Ops in simpler ops that compute the same: for targets and derivatives that have no form of their own for them."""
