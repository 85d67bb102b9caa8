"""LLVM: tile programs as LLVM IR, compiled to machine code that needs no compiler and no library where it runs."""
