"""The public names of the room; ``__init__.py`` loads each when it is first used."""

from .information.dcimig import dcimig as dcimig
from .information.infomec import infomec as infomec
from .information.jemmig import jemmig as jemmig
from .information.mig import mig as mig
from .information.mig_sup import mig_sup as mig_sup
from .information.modularity import modularity as modularity
from .information.rmig import rmig as rmig
from .interventions.beta_vae import beta_vae as beta_vae
from .interventions.factor_vae import factor_vae as factor_vae
from .interventions.irs import irs as irs
from .interventions.z_diff import z_diff as z_diff
from .interventions.z_min_variance import z_min_variance as z_min_variance
from .metric import Metric as Metric
from .predictors.attribute_classification import attribute_classification as attribute_classification
from .predictors.dci import dci as dci
from .predictors.dci_es import dci_es as dci_es
from .predictors.downstream import downstream as downstream
from .predictors.downstream_mlp import downstream_mlp as downstream_mlp
from .predictors.explicitness import explicitness as explicitness
from .predictors.latent_factor_correlation import latent_factor_correlation as latent_factor_correlation
from .predictors.linear_r2 import linear_r2 as linear_r2
from .predictors.mcc import mcc as mcc
from .predictors.sap import sap as sap
from .registry import METRICS as METRICS
from .registry import as_metric as as_metric
from .registry import names as names
from .registry import register_metric as register_metric
from .registry import score as score
from .result import Score as Score
from .sample import Sample as Sample
from .unlabelled.code_mutual_information import code_mutual_information as code_mutual_information
from .unlabelled.gaussian_total_correlation import gaussian_total_correlation as gaussian_total_correlation
from .unlabelled.information_invariance import information_invariance as information_invariance
from .unlabelled.monte_carlo_total_correlation import (
    monte_carlo_total_correlation as monte_carlo_total_correlation,
)
from .unlabelled.udr import udr as udr
from .unlabelled.wasserstein_correlation import wasserstein_correlation as wasserstein_correlation
from .unlabelled.windin import windin as windin
