"""The ONNX frontend. Only this package imports `onnx` and `onnx_ir`."""
