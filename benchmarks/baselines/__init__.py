"""The workloads as a JAX user would write them by hand: plain jax.numpy and lax, weights as arguments.

Each constructor takes the shared weights and returns `(function, params)`; `function(params, **inputs)` takes the
inputs of the ONNX model (images as NCHW) and returns its outputs as a tuple. Convolution networks compute in NHWC,
the layout JAX libraries use; BatchNorm runs in inference form, unfolded; dense kernels are `[in, out]`.
"""
