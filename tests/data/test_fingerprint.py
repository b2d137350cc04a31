import numpy as np
import pytest

import unweave as uw
from unweave.data.fingerprint import fingerprint


def made(change=None, n=50, **options):
    images = np.arange(n * 64).reshape(n, 8, 8, 1).astype(np.uint8)
    factors = np.arange(n)[:, None] % 5
    if change is not None:
        change(images, factors)
    return uw.data.from_arrays(images, factors, **options)


def test_names_do_not_matter():
    assert fingerprint(made(name="a")) == fingerprint(made(name="b"))


@pytest.mark.parametrize("n", [49, 51])
def test_the_number_of_images_does(n):
    assert fingerprint(made()) != fingerprint(made(n=n))


def test_one_pixel_of_one_image_does():
    def change(images, factors):
        images[37, 3, 3, 0] += 1

    assert fingerprint(made()) != fingerprint(made(change))


def test_one_factor_of_one_image_does():
    def change(images, factors):
        factors[37] = 0

    assert fingerprint(made()) != fingerprint(made(change))


def test_a_few_images_are_spread_over_all():
    def change(images, factors):
        images[-1] = 0

    assert fingerprint(made(), most=5) != fingerprint(made(change), most=5)
    assert fingerprint(made(), most=5) != fingerprint(made())
