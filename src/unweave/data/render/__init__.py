"""Procedural image worlds drawn by a small vectorised renderer in plain NumPy.

`render_rooms` draws the factor grid of Shapes3D, `render_solids` a set with the structure of Cars3D
and 3D Chairs. The same factors give the same bytes on every machine and in every batch.
"""

from unweave.data.render.rooms import ROOMS_SIZES, render_rooms
from unweave.data.render.solids import NUM_SOLIDS, SOLIDS_SIZES, render_solids

__all__ = ["NUM_SOLIDS", "ROOMS_SIZES", "SOLIDS_SIZES", "render_rooms", "render_solids"]
