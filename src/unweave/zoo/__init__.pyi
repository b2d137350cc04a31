from .card import Card as Card
from .card import Evaluation as Evaluation
from .card import card as card
from .card import names as names
from .evaluate import Comparison as Comparison
from .evaluate import evaluate as evaluate
from .publish import publish as publish
