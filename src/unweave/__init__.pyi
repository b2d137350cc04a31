from . import analyses as analyses
from . import data as data
from . import discovery as discovery
from . import evaluation as evaluation
from . import explorer as explorer
from . import figures as figures
from . import methods as methods
from . import metrics as metrics
from . import networks as networks
from . import objectives as objectives
from . import study as study
from . import training as training
from . import zoo as zoo
from .data import register_data as register_data
from .discovery import discover as discover
from .errors import UnweaveError as UnweaveError
from .evaluation import evaluate as evaluate
from .methods import register_method as register_method
from .methods import register_term as register_term
from .metrics import register_metric as register_metric
from .training import load as load
from .training import train as train

__version__: str
