"""Which compile options a program gets, by what it does. Measured on XLA:CPU of jaxlib 0.10 (2 cores, AVX-512).

    work in the program      one thread               many threads
    dots                     Eigen (0.87 of YNN)      YNN (Eigen's dots use one core)
    convolutions               Eigen (YNN: 1.3 to 1.4)  Eigen
    grouped convolutions     YNN (Eigen: 2)           YNN
    neither                  512-bit vectors          512-bit vectors (0.8 to 0.9 of the default)

The memory-optimized schedule costs no time and up to halves the temporaries. What is stored is data; the number of
threads is known only where the model is loaded (`gcomp.runtime.xla.options`).
"""

from __future__ import annotations

from gcomp.lowering.xla.survey import Survey
from gcomp.runtime.strict_json import Json

_YNN = "xla_cpu_experimental_ynn_fusion_type"
_DOT = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
_CONVOLUTION = "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"


def options_for(survey: Survey) -> dict[str, Json]:
    """The options of a program, in sections `always`, `one_thread` and `many_threads`."""
    has_contractions = any(survey.ops.get(name) for name in ("stablehlo.dot_general", "stablehlo.convolution"))
    always: dict[str, Json] = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    if not has_contractions:
        return {"always": {**always, "xla_cpu_prefer_vector_width": 512}}
    # Eigen reads a transposed right matrix four times slower; YNNPACK does not mind.
    transposed = [_DOT] if survey.transposed_dots else []
    convolution = [_CONVOLUTION] if survey.ops.get("stablehlo.convolution") else []
    grouped = [_CONVOLUTION] if survey.grouped_convolutions else []
    return {
        "always": always,
        "one_thread": {_YNN: ",".join([*transposed, *convolution])},
        "many_threads": {_YNN: ",".join([_DOT, *grouped])},
    }
