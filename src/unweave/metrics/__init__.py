"""Metrics of representations: functions of codes and factors, from any encoder of any framework.

>>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
>>> uw.metrics.mig(-factors, factors)
mig = 1
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
