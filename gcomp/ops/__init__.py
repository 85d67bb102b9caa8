"""The vocabulary of operations, with NumPy's names and meaning, one file for each family (docs/guides/python.md).

On arrays and tensors that are known they run at once; on traced ones they become a part of the program. Each is defined
once over the IR builder, so that what runs at once and what is compiled cannot differ in meaning.
"""

from __future__ import annotations

from gcomp.ops import (
    arithmetic,
    contraction,
    control,
    creation,
    elementwise,
    indexing,
    movement,
    neural,
    printing,
    random,
    reduction,
    sorting,
    windows,
)
from gcomp.ops.arithmetic import *
from gcomp.ops.contraction import *
from gcomp.ops.control import *
from gcomp.ops.creation import *
from gcomp.ops.elementwise import *
from gcomp.ops.indexing import *
from gcomp.ops.movement import *
from gcomp.ops.neural import *
from gcomp.ops.printing import *
from gcomp.ops.reduction import *
from gcomp.ops.sorting import *
from gcomp.ops.windows import *
from gcomp.tensors.tensor import Tensor

__all__ = ["Tensor", "random"]
__all__ += arithmetic.__all__
__all__ += contraction.__all__
__all__ += control.__all__
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += movement.__all__
__all__ += neural.__all__
__all__ += printing.__all__
__all__ += reduction.__all__
__all__ += sorting.__all__
__all__ += windows.__all__
