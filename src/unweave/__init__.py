"""unweave: learn, measure and compare disentangled representations.

Images go in on the left, and each arrow is one call: data -> method -> run -> scores.

>>> images = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 1), np.uint8)
>>> data = uw.data.from_arrays(images, {"row": np.repeat(np.arange(4), 4), "column": np.tile(np.arange(4), 4)})
>>> method = uw.methods.create("beta_tcvae", data, beta=6, latent_size=2, architecture="mlp")
>>> run = uw.train(method, data, steps=2, seed=0)
>>> run.finished
True

Rooms (``uw.data``, ``uw.methods``, …) and calls are imported when they are first used: ``import unweave`` alone imports
neither torch nor pandas.
"""

import os
import sys

import lazy_loader

# Threads that wait for each other sleep instead of spinning. Where other processes want the cores, threads that spin
# keep them from the one thread that all others wait for. The runtime of torch's threads reads this when it is loaded,
# so it is for processes that import unweave before torch. Results have the same bits either way.
if "torch" not in sys.modules:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.2.0"
