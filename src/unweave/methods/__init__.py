"""Methods: what can be trained. One contract, and one folder per family of methods.

>>> uw.methods.names()[:3]
['vae', 'beta_vae', 'factor_vae']

A method is created for a data set by its name and hyperparameters, :func:`~unweave.methods.registry.create`; what
anybody may ask of it is in :mod:`unweave.methods.method`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
