"""Questions about programs that change nothing."""
