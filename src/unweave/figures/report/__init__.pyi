from .write import ReportError as ReportError
from .write import write_report as write_report
