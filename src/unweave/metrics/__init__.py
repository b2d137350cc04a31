"""Metrics of representations: functions of codes and factors, from any encoder of any framework.

>>> factors = np.random.default_rng(0).integers(0, 4, (1000, 2))
>>> uw.metrics.mig(-factors, factors)
mig = 1
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
