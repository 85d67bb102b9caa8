"""Importers of `com.microsoft`, the operators of ONNX Runtime's optimized and quantized files; one file per family."""
