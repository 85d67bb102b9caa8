"""From the IR to what a target runs: one package per target."""
