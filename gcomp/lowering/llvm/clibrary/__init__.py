"""Models as libraries for C programs: a header, an object and an archive, and all that a first program needs."""
