import numpy as np
import pytest

import unweave as uw


@pytest.fixture(scope="session")
def digits():
    """40 images of 28x28 pixels: a bright square on a noisy ground."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (40, 28, 28, 1), np.uint8)
    size, shift = np.arange(40) % 4, np.arange(40) // 4
    for image, wide, left in zip(images, size, shift, strict=True):
        image[6 : 12 + 3 * wide, left : left + 6 + 3 * wide] = 255
    return uw.data.from_arrays(images, {"size": size, "shift": shift}, name="digits")
