import numpy as np


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal in every bit, except that any NaN equals any other."""
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if x.shape != y.shape:
        return False
    return bool(np.all((x.view(np.int64) == y.view(np.int64)) | (np.isnan(x) & np.isnan(y))))
