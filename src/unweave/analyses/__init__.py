"""The papers' questions to a study: functions from the results table to small tables, one module per question.

====================================  ======================================================================
:mod:`~unweave.analyses.scores`            What did each method score?
:mod:`~unweave.analyses.ranking`           Which method is best, and how sure is that?
:mod:`~unweave.analyses.total_correlation` Do codes factorise?
:mod:`~unweave.analyses.agreement`         Do the metrics agree with each other?
:mod:`~unweave.analyses.hyperparameters`   How much do method and strength decide the score?
:mod:`~unweave.analyses.selection`         Can a good setting be chosen?
:mod:`~unweave.analyses.downstream`        Do disentangled codes help a task that comes after?
:mod:`~unweave.analyses.reconstruction`    What does disentanglement cost in reconstruction?
:mod:`~unweave.analyses.correlated_noise`  What does correlated noise of the posterior change?
====================================  ======================================================================

:mod:`~unweave.analyses.runs` and :mod:`~unweave.analyses.variants` say which runs are compared,
:mod:`~unweave.analyses.statistics` has the intervals and tests.

>>> table = uw.analyses.simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=5)
>>> uw.analyses.rank_methods(table, ["mig"])[["method", "rank"]]
       method  rank
0  factor_vae     1
1    beta_vae     2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
