from .discovery import Discovery as Discovery
from .discovery import discover as discover
from .factors import Factor as Factor
from .stability import axis_stability as axis_stability
