"""The workloads as PyTorch modules with random weights; one constructor per workload, named after it."""
