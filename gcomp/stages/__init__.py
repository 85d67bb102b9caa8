"""What users may ask for besides compiling, each as a stage around the passes and the lowering."""
