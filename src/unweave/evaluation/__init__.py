"""Scores of trained representations: each image is encoded once.

>>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
>>> uw.evaluate(lambda images: images, data, "wasserstein_correlation", num_train=8)
metric                   value
-----------------------  -----
wasserstein_correlation  0.000
(protocol paper; 4 points of 4 rows)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
