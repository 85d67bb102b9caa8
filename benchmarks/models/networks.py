"""ResNet-50 and MobileNetV2 as ONNX files, built without a framework: random weights, batch normalizations kept.

write("resnet50", Path("resnet50.onnx"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A graph under construction; each method appends nodes and gives the name of what they compute."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        array = (self._random.standard_normal(shape) * scale + offset).astype(np.float32)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution and its batch normalization."""
        kernel = self.weight(outputs, inputs // groups, size, size, scale=(2 * groups / (inputs * size**2)) ** 0.5)
        pads, strides = [size // 2] * 4, [stride] * 2
        y = self.node("Conv", x, kernel, kernel_shape=[size] * 2, pads=pads, strides=strides, group=groups)
        scale, bias, mean = (self.weight(outputs, scale=0.1, offset=o) for o in (1.0, 0.0, 0.0))
        return self.node("BatchNormalization", y, scale, bias, mean, self.weight(outputs, scale=0.1, offset=2.0))

    def classifier(self, x: str, features: int) -> str:
        """Averages over positions, and a thousand logits."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        return self.node("Gemm", flat, self.weight(features, 1000, scale=features**-0.5), self.weight(1000, scale=0.1))


def resnet50(net: Network) -> str:
    """Bottlenecks of 1x1, 3x3 and 1x1 convolutions around additions."""
    x = net.node("Relu", net.conv("x", 3, 64, 7, 2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for stage, (width, blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = net.node("Relu", net.conv(x, inputs, width, 1))
            y = net.node("Relu", net.conv(y, width, width, 3, stride))
            y = net.conv(y, width, 4 * width, 1)
            x = net.conv(x, inputs, 4 * width, 1, stride) if not block else x
            x, inputs = net.node("Relu", net.node("Add", x, y)), 4 * width
    return net.classifier(x, inputs)


_MOBILE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Of MobileNetV2: expansion, channels, blocks, stride."""


def mobilenetv2(net: Network) -> str:
    """Inverted residuals: expansions around depthwise convolutions."""

    def clipped(x: str) -> str:
        return net.node("Clip", x, zero, six)

    zero, six = (net.weight(scale=0, offset=limit) for limit in (0.0, 6.0))
    x, inputs = clipped(net.conv("x", 3, 32, 3, 2)), 32
    for expansion, outputs, blocks, stride in _MOBILE:
        for block in range(blocks):
            step, hidden = 1 if block else stride, inputs * expansion
            y = clipped(net.conv(x, inputs, hidden, 1)) if expansion > 1 else x
            y = net.conv(clipped(net.conv(y, hidden, hidden, 3, step, hidden)), hidden, outputs, 1)
            x = net.node("Add", x, y) if step == 1 and inputs == outputs else y
            inputs = outputs
    return net.classifier(clipped(net.conv(x, inputs, 1280, 1)), 1280)


NETWORKS: Mapping[str, Callable[[Network], str]] = {"resnet50": resnet50, "mobilenetv2": mobilenetv2}


def write(name: str, path: Path) -> None:
    """Write one of the networks, for one image of 224 x 224."""
    net = Network()
    result = NETWORKS[name](net)
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])
    logits = helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, 1000])
    graph = helper.make_graph(net.nodes, name, [image], [logits], net.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
