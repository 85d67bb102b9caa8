"""What programs are compiled for. A family of targets is a class in a module of its name; adding_a_target.md."""
