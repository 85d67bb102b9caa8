"""Which compile options a program gets, by what it does. Measured on XLA:CPU of jaxlib 0.10 (2 cores, AVX-512).

    work in the program      one thread               many threads
    dots                     Eigen (0.87 of YNN)      YNN (Eigen's dots use one core)
    convolutions               Eigen (YNN: 1.3 to 1.4)  Eigen
    grouped convolutions     YNN (Eigen: 2)           YNN
    neither                  512-bit vectors          512-bit vectors (0.8 to 0.9 of the default)
    reductions to a number   YNN (0.15)               YNN (0.15)
    bytes taken apart        no YNN (0.25)            no YNN (0.25), of what has no dots

A program without dots has YNN for all reductions, which is the default, and pays but for sums of what it unpacks: YNN
wants that stored. With dots, YNN for all reductions changes nothing (0.99 to 1.06 of transformers and detectors).

The memory-optimized schedule costs no time and up to halves the temporaries. What is stored is data; the number of
threads is known only where the model is loaded (`gcomp.runtime.xla.options`).
"""

from __future__ import annotations

from gcomp.lowering.xla.survey import Survey
from gcomp.runtime.strict_json import Json

_YNN = "xla_cpu_experimental_ynn_fusion_type"
_DOT = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
_CONVOLUTION = "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"
_REDUCE = "LIBRARY_FUSION_TYPE_REDUCE"
_WRONG_IN_512_BITS = ("chlo.atan", "stablehlo.atan2")
"""XLA makes atan2(x, 1) an atan of LLVM's, which is wrong in 512-bit vectors: of 64 elements, all."""


def options_for(survey: Survey, device: str) -> dict[str, Json]:
    """The options of a program on a kind of device, in sections `always`, `one_thread` and `many_threads`."""
    if device != "cpu":
        return {}  # XLA's own defaults: nothing was measured there
    has_contractions = any(survey.ops.get(name) for name in ("stablehlo.dot_general", "stablehlo.convolution"))
    always: dict[str, Json] = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    if survey.updates_from_themselves:
        always["xla_disable_hlo_passes"] = "fusion"  # wrong in place; no barrier keeps XLA from it
    if not has_contractions:
        plain: dict[str, Json] = {_YNN: ""} if survey.unpackings else {}
        wide = not any(survey.ops.get(name) for name in _WRONG_IN_512_BITS)
        vectors: dict[str, Json] = {"xla_cpu_prefer_vector_width": 512} if wide else {}
        return {"always": {**always, **vectors, **plain}}
    # Eigen reads a transposed right matrix four times slower; YNNPACK does not mind.
    transposed = [_DOT] if survey.transposed_dots else []
    convolution = [_CONVOLUTION] if survey.ops.get("stablehlo.convolution") else []
    grouped = [_CONVOLUTION] if survey.grouped_convolutions else []
    whole = [_REDUCE] if survey.whole_reductions else []
    return {
        "always": always,
        "one_thread": {_YNN: ",".join([*transposed, *convolution, *whole])},
        "many_threads": {_YNN: ",".join([_DOT, *grouped, *whole])},
    }
