from .layers import UnsupportedNetworkError as UnsupportedNetworkError
from .notebook import Explorer as Explorer
from .notebook import explore as explore
from .page import render_page as render_page
from .page import write_page as write_page
from .study import write_study_pages as write_study_pages
