"""Names the NumPy arrays of the platform, by the type of their elements."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Days = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
