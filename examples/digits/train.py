"""Train a small convolution network on scikit-learn's 8x8 digits and export it: `digits.onnx`, `heldout.npz`.

Both files are committed; run this only to make them anew. Same versions, same machine: same bytes.

    pip install torch onnxscript scikit-learn
    python examples/digits/train.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from onnxscript import optimizer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
HELD_OUT = 360  # of 1797 images
EPOCHS, BATCH = 30, 64


def network() -> nn.Sequential:
    """Convolution, depthwise-separable convolution, pooling, convolution, two dense layers, softmax."""

    def norm(layer: nn.Conv2d) -> list[nn.Module]:
        return [layer, nn.BatchNorm2d(layer.out_channels), nn.ReLU()]

    return nn.Sequential(
        *norm(nn.Conv2d(1, 16, 3, padding=1, bias=False)),
        *norm(nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)),
        *norm(nn.Conv2d(16, 32, 1, bias=False)),
        nn.MaxPool2d(2),
        *norm(nn.Conv2d(32, 32, 3, padding=1, bias=False)),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
        nn.Softmax(dim=1),
    )


def train(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Fit the logits (all but the softmax) with AdamW and a one-cycle learning rate; ends in inference mode."""
    logits = model[:-1]
    steps = len(images) // BATCH
    adamw = torch.optim.AdamW(model.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adamw, 5e-3, epochs=EPOCHS, steps_per_epoch=steps)
    model.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images))[: steps * BATCH].view(steps, BATCH):
            loss = nn.functional.cross_entropy(logits(images[batch]), labels[batch])
            adamw.zero_grad()
            loss.backward()
            adamw.step()
            schedule.step()
    model.eval()


def export(model: nn.Module, path: Path) -> None:
    """Write ONNX with a dynamic dimension `batch`, BatchNorm nodes kept, and no trace of this machine."""
    program = torch.onnx.export(
        model,
        (torch.zeros(2, 1, 8, 8),),
        dynamo=True,
        optimize=False,  # it would fold BatchNorm into the convolutions; leave that to the compiler
        input_names=["images"],
        output_names=["probabilities"],
        dynamic_shapes=({0: "batch"},),
        verbose=False,
    )
    assert program is not None
    optimizer.inline(program.model)
    optimizer.fold_constants(program.model, onnx_shape_inference=True)
    optimizer.remove_unused_nodes(program.model)
    for node in program.model.graph:
        node.metadata_props.clear()  # stack traces, with the paths of whoever exported
    program.save(path, external_data=False)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the order of sums, and so the file, must not depend on the machine's cores
    torch.use_deterministic_algorithms(True)

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    seen, held_out, seen_labels, held_out_labels = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=0, stratify=labels
    )
    model = network()
    train(model, torch.from_numpy(seen), torch.from_numpy(seen_labels))
    with torch.no_grad():
        guesses = model(torch.from_numpy(held_out)).argmax(1).numpy()
    print(f"held-out accuracy {np.mean(guesses == held_out_labels):.2%} on {HELD_OUT} images")

    export(model, HERE / "digits.onnx")
    np.savez_compressed(HERE / "heldout.npz", images=held_out, labels=held_out_labels)
    for name in ("digits.onnx", "heldout.npz"):
        print(f"wrote {name}: {(HERE / name).stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
