import numpy as np
import pytest

import unweave as uw


def small_images():
    """64 images of a bright square at 8 x 8 places, 32 x 32 pixels."""
    images = np.zeros((64, 32, 32, 1), np.uint8)
    for row in range(64):
        y, x = divmod(row, 8)
        images[row, 3 * y : 3 * y + 8, 3 * x : 3 * x + 8] = 255
    return uw.data.from_arrays(
        images, {"y": np.repeat(np.arange(8), 8), "x": np.tile(np.arange(8), 8)}, name="squares"
    )


@pytest.fixture
def squares():
    return small_images()
