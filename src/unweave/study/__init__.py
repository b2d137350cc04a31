"""Studies: grids of runs, the processes that do them, and their results in one table.

A study is a file (``load_study``), planned (``plan``) and checked (``prepare``) before anything runs; ``run`` does its
runs with an executor; ``load_results`` reads the table of the results, and ``open_study`` opens a study that was
started before.

>>> study, source = uw.study.load_study("demo")
>>> [job.method for job in uw.study.plan(study, source).jobs][:3]
['vae', 'beta_vae', 'beta_tcvae']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
