from .paper import PAPERS as PAPERS
from .paper import Exhibit as Exhibit
from .paper import Paper as Paper
from .paper import Protocol as Protocol
from .paper import register_paper as register_paper
