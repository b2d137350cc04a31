"""Folders of small photographs."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def save(tmp_path):
    """``save(folder, images, names)``: image files of arrays; the folder."""

    def write(folder, images, names=None, suffix="png"):
        target = tmp_path / folder
        target.mkdir(exist_ok=True)
        for number, image in enumerate(images):
            name = f"{number:03d}.{suffix}" if names is None else names[number]
            Image.fromarray(image).save(target / name)
        return target

    return write


@pytest.fixture
def squares():
    """``squares(n)``: white squares (n, 28, 28) at random positions, all different."""

    def draw(n, seed=0):
        rng = np.random.default_rng(seed)
        positions = rng.choice(20 * 20, n, replace=False)
        images = np.zeros((n, 28, 28), np.uint8)
        for image, position in zip(images, positions, strict=True):
            y, x = divmod(int(position), 20)
            image[y : y + 8, x : x + 8] = 255
        return images

    return draw
