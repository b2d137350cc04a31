"""Families of solids from outdoors: vehicles and towers.

Each function draws one member of its family from `dice`; the front faces negative y.
"""

from unweave.data.render.camera import Vector, circle
from unweave.data.render.dice import Dice
from unweave.data.render.parts import (
    Paint,
    Part,
    bar,
    box,
    checked,
    ellipsoid,
    hsv,
    rod,
    striped,
    wedge,
    windows,
)

_GLASS = (0.2, 0.28, 0.36)
_DARK = (0.13, 0.13, 0.15)


def vehicle(dice: Dice) -> list[Part]:
    """A car, van or lorry: body, cabin with windows, spoked wheels, lights, rack or load."""
    hue = dice.uniform(0.0, 1.0)
    colour, second = hsv(hue, dice.uniform(0.6, 0.95), dice.uniform(0.6, 0.95)), hsv(hue + 0.45, 0.3, 0.95)
    body = dice.pick((Paint(colour), striped(colour, second, (2.6, 0.0, 0.0), 0.3), Paint(colour)))
    w, long, low = dice.uniform(0.42, 0.55), dice.uniform(0.95, 1.25), dice.uniform(0.28, 0.4)
    radius = dice.uniform(0.2, 0.28)
    floor = 0.8 * radius
    parts = [wedge((0.0, 0.0, floor + low / 2), (2 * w, 2 * long, low), (0.94, 0.97), (0.0, 0.0), body)]
    roof = floor + low
    kind = dice.integer(0, 2)
    high = dice.uniform(0.3, 0.45) if kind == 0 else dice.uniform(0.45, 0.65)
    length = dice.uniform(0.9, 1.2) if kind == 0 else (1.5 * long if kind == 1 else 0.6 * long)
    middle = (
        dice.uniform(0.0, 0.25) if kind == 0 else (long - length / 2 - 0.05) * (1.0 if kind == 1 else -0.5)
    )
    top = (0.78, 0.6) if kind == 0 else (0.9, 0.85)
    lean = (0.0, dice.uniform(0.0, 0.12))
    parts.append(wedge((0.0, middle, roof + high / 2), (1.9 * w, length, high), top, lean, body))
    # Glass is a slightly larger, lower copy of the cabin, cut into panes by stripes along the car.
    panes = striped(_GLASS, colour, (0.0, dice.pick((1.6, 2.4, 3.2)), 0.0), 0.16)
    parts.append(
        wedge(
            (0.0, middle, roof + 0.47 * high),
            (1.95 * w, 1.01 * length, 0.6 * high),
            (0.87, 0.77) if kind == 0 else (0.94, 0.92),
            (0.0, 0.6 * lean[1]),
            panes,
        )
    )
    if kind == 2:
        crate = checked(hsv(hue + 0.3, 0.6, 0.8), hsv(hue + 0.3, 0.6, 0.5), dice.uniform(2.5, 4.5))
        load = dice.uniform(0.25, 0.6)
        parts.append(box((0.0, 0.45 * long, roof + load / 2), (1.8 * w, 0.95 * long, load), crate))
    elif dice.chance(0.5):
        rail, z = Paint((0.75, 0.75, 0.78)), roof + high + 0.06
        for k in range(dice.integer(2, 4)):
            y = middle - 0.2 + 0.16 * k
            parts.append(bar((-0.75 * w, y, z), (0.75 * w, y, z), 0.05, 0.05, rail))
    spokes, rim = dice.integer(3, 6), Paint(hsv(hue + dice.uniform(0.0, 1.0), 0.35, 0.95))
    for y in (-0.62 * long, dice.uniform(0.52, 0.66) * long):
        for side in (-1.0, 1.0):
            parts += _wheel((side * w, y, radius), side, radius, spokes, rim)
    return parts + _car_trimmings(dice, w, long, low, floor, second)


def _wheel(centre: Vector, side: float, radius: float, spokes: int, rim: Paint) -> list[Part]:
    x, y, z = centre
    inner, outer, face = x - 0.07 * side, x + 0.07 * side, x + 0.08 * side
    parts = [rod((inner, y, z), (outer, y, z), radius, radius, Paint(_DARK))]
    for k in range(spokes):
        c, s = circle(20.0 + 360.0 * k / spokes)
        reach = 0.75 * radius
        parts.append(bar((face, y, z), (face, y + reach * c, z + reach * s), 0.05, 0.06, rim))
    return parts


def _car_trimmings(dice: Dice, w: float, long: float, low: float, floor: float, accent: Vector) -> list[Part]:
    z, size = floor + 0.55 * low, dice.uniform(0.06, 0.1)
    white, red, dark = Paint((1.0, 0.95, 0.6)), Paint((0.85, 0.08, 0.08)), Paint(_DARK)
    parts = []
    for x in (-0.7 * w, 0.7 * w):
        parts.append(ellipsoid((x, -long, z), (size, 0.06, size), white))
        parts.append(box((x, long - 0.01, z), (2 * size, 0.06, 1.2 * size), red))
    grille = striped((0.2, 0.2, 0.2), (0.8, 0.8, 0.8), (12.0, 0.0, 0.0))
    parts.append(box((0.0, -long, z - 0.03), (0.7 * w, 0.05, 0.4 * low), grille))
    parts.append(bar((-w, -long - 0.03, floor + 0.05), (w, -long - 0.03, floor + 0.05), 0.08, 0.08, dark))
    if dice.chance(0.4):
        parts += [
            bar((x, long - 0.1, floor + low), (x, long, floor + low + 0.2), 0.04, 0.04, dark)
            for x in (-0.3, 0.3)
        ]
        parts.append(box((0.0, long, floor + low + 0.2), (1.9 * w, 0.22, 0.04), Paint(accent)))
    if dice.chance(0.5):
        parts.append(rod((0.6 * w, 0.5, floor + low), (0.6 * w, 0.7, floor + low + 0.75), 0.02, 0.015, dark))
    return parts


def tower(dice: Dice) -> list[Part]:
    """A building of two to four storeys with windows, a door, an annex, a roof and a flag."""
    hue = dice.uniform(0.0, 1.0)
    lit = hsv(hue + dice.uniform(0.3, 0.7), 0.6, dice.uniform(0.15, 0.4))
    z, wide = 0.0, dice.uniform(0.45, 0.65)
    parts = [box((0.0, 0.0, 0.04), (2.4 * wide, 2.4 * wide, 0.08), Paint((0.6, 0.6, 0.58)))]
    front = wide
    for k in range(dice.integer(2, 4)):
        high, rate = dice.uniform(0.4, 0.75), dice.uniform(2.2, 4.2)
        wall = hsv(hue + 0.08 * k, dice.uniform(0.2, 0.6), dice.uniform(0.7, 0.95))
        courses = striped(wall, lit, (0.0, 0.0, dice.uniform(4.0, 8.0)), 0.35)
        paint = dice.pick(
            (windows(wall, lit, rate, rate), windows(wall, lit, 1.5 * rate, 0.8 * rate), courses)
        )
        if dice.chance(0.3):
            parts.append(rod((0.0, 0.0, z), (0.0, 0.0, z + high), wide, 0.9 * wide, paint))
        else:
            parts.append(
                wedge((0.0, 0.0, z + high / 2), (2 * wide, 2 * wide, high), (0.94, 0.94), (0.0, 0.0), paint)
            )
        z += high
        parts.append(box((0.0, 0.0, z), (2.1 * wide, 2.1 * wide, 0.06), Paint(lit)))
        wide *= dice.uniform(0.7, 0.95)
    door = Paint(hsv(hue + 0.5, 0.8, 0.6))
    parts.append(box((dice.uniform(-0.15, 0.15), -front, 0.2), (0.24, 0.08, 0.36), door))
    parts.append(box((0.0, -front - 0.12, 0.04), (0.4, 0.3, 0.08), Paint((0.75, 0.72, 0.65))))
    return parts + _annex(dice, front, hue) + _roof(dice, z, wide, hue)


def _annex(dice: Dice, front: float, hue: float) -> list[Part]:
    side, high = dice.pick((-1.0, 1.0)), dice.uniform(0.35, 0.8)
    wall, tile = hsv(hue + 0.15, 0.35, 0.9), hsv(hue + 0.55, 0.7, 0.6)
    x, y = side * (front + 0.2), dice.uniform(-0.2, 0.2)
    brick = checked(wall, hsv(hue + 0.15, 0.4, 0.75), dice.uniform(4.0, 6.0))
    roof = striped(tile, hsv(hue + 0.55, 0.7, 0.4), (0.0, 7.0, 0.0))
    parts = [
        box((x, y, high / 2), (0.5, 0.6, high), brick),
        wedge((x, y, high + 0.15), (0.58, 0.68, 0.3), (0.0, 1.0), (0.0, 0.0), roof),
    ]
    if dice.chance(0.6):
        rail, z = Paint((0.3, 0.3, 0.33)), dice.uniform(0.75, 0.95)
        parts.append(box((-side * front, 0.0, z), (0.4, 0.6, 0.05), rail))
        for k in range(4):
            px, py = -side * (front + 0.18), -0.27 + 0.18 * k
            parts.append(rod((px, py, z), (px, py, z + 0.2), 0.018, 0.018, rail))
    return parts


def _roof(dice: Dice, z: float, wide: float, hue: float) -> list[Part]:
    tile, high, style = hsv(hue + 0.6, 0.75, 0.7), dice.uniform(0.3, 0.6), dice.integer(0, 3)
    roof = striped(tile, hsv(hue + 0.6, 0.75, 0.5), (0.0, 0.0, 9.0))
    parts = []
    if style == 0:
        parts.append(
            wedge((0.0, 0.0, z + high / 2), (2.1 * wide, 2.1 * wide, high), (0.0, 0.0), (0.0, 0.0), roof)
        )
    elif style == 1:
        parts.append(
            wedge((0.0, 0.0, z + high / 2), (2.1 * wide, 2.1 * wide, high), (0.0, 1.0), (0.0, 0.0), roof)
        )
    elif style == 2:
        parts.append(ellipsoid((0.0, 0.0, z), (wide, wide, high), roof))
    else:
        for x in (-0.85 * wide, 0.85 * wide):
            parts += [
                box((x, y * wide, z + 0.1), (0.14, 0.16, 0.16), Paint(tile)) for y in (-0.85, 0.0, 0.85)
            ]
    x, y = dice.uniform(-0.5, 0.5) * wide, dice.uniform(-0.5, 0.5) * wide
    if dice.chance(0.5):
        parts.append(box((x, y, z + 0.3), (0.16, 0.16, 0.6), Paint(hsv(0.02, 0.6, 0.6))))
    pole: Vector = (0.0, 0.0, z + high + dice.uniform(0.25, 0.45))
    flag = striped(hsv(hue + 0.4, 0.9, 0.9), (1.0, 1.0, 1.0), (0.0, 0.0, 8.0))
    parts.append(rod((0.0, 0.0, z), pole, 0.025, 0.018, Paint(_DARK)))
    parts.append(box((0.17, 0.0, pole[2] - 0.1), (0.34, 0.02, 0.2), flag))
    return parts
