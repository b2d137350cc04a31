"""Pictures of data sets, representations and results."""

from unweave.figures.contact_sheet import contact_sheet, gallery
from unweave.figures.sheet import check_picture_path, save_picture

__all__ = ["check_picture_path", "contact_sheet", "gallery", "save_picture"]
