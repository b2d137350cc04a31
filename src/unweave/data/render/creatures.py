"""The family of creatures: animals with a body, legs, a head and a tail. Their front faces negative y."""

from unweave.data.render.camera import Vector
from unweave.data.render.dice import Dice
from unweave.data.render.parts import Paint, Part, box, checked, ellipsoid, hsv, ring, rod, striped, wedge

_DARK = (0.13, 0.13, 0.15)


def creature(dice: Dice) -> list[Part]:
    """An animal: body, four or six legs, neck, head with eyes and ears or horns, tail."""
    hue = dice.uniform(0.0, 1.0)
    skin, mark = (
        hsv(hue, dice.uniform(0.3, 0.85), dice.uniform(0.5, 0.95)),
        hsv(hue + dice.uniform(0.1, 0.6), 0.6, 0.35),
    )
    rate = dice.uniform(2.5, 5.0)
    coat = dice.pick(
        (
            Paint(skin),
            striped(skin, mark, (0.0, rate, 0.0), 0.4),
            checked(skin, mark, rate),
            striped(skin, mark, (0.0, 0.4 * rate, rate)),
        )
    )
    w, long, high = dice.uniform(0.25, 0.42), dice.uniform(0.6, 0.95), dice.uniform(0.25, 0.4)
    leg = dice.uniform(0.35, 0.85)
    z = leg + 0.8 * high
    plain = Paint(hsv(hue, 0.5, 0.5))
    if dice.chance(0.7):
        parts = [ellipsoid((0.0, 0.0, z), (w, long, high), coat)]
    else:
        parts = [wedge((0.0, 0.0, z), (1.7 * w, 1.7 * long, 1.5 * high), (0.8, 0.9), (0.0, 0.0), coat)]
    pairs, thick, step = dice.integer(2, 3), dice.uniform(0.04, 0.1), dice.uniform(0.0, 0.15)
    for k in range(pairs):
        y = (1.3 * k / (pairs - 1) - 0.65) * long
        for side in (-1.0, 1.0):
            foot: Vector = (side * (0.75 * w + 0.08), y + side * step, 0.0)
            parts.append(rod(foot, (side * 0.6 * w, y, z), 0.7 * thick, 1.2 * thick, plain))
            parts.append(box((foot[0], foot[1] - 0.03, 0.04), (2 * thick, 2.6 * thick, 0.08), Paint(_DARK)))
    return parts + _creature_head(dice, long, z, high, coat, plain) + _tail(dice, long, z, coat)


def _creature_head(dice: Dice, long: float, z: float, high: float, coat: Paint, plain: Paint) -> list[Part]:
    x, y, top = dice.uniform(-0.12, 0.12), -long - dice.uniform(0.0, 0.25), z + dice.uniform(0.15, 0.8)
    size = dice.uniform(0.18, 0.28)
    parts = [
        rod((0.0, 0.1 - 0.8 * long, z), (x, y, top), 0.6 * high, 0.45 * size, coat),
        ellipsoid((x, y, top), (size, 1.2 * size, size), plain),
        ellipsoid(
            (x, y - 1.1 * size, top - 0.05), (0.6 * size, 0.5 * size, 0.5 * size), Paint((0.9, 0.75, 0.65))
        ),
    ]
    ears, length = dice.integer(0, 2), dice.uniform(0.18, 0.45)
    for side in (-1.0, 1.0):
        eye: Vector = (x + side * 0.55 * size, y - 0.8 * size, top + 0.45 * size)
        parts.append(ellipsoid(eye, (0.075, 0.075, 0.075), Paint((0.97, 0.97, 0.97))))
        parts.append(
            ellipsoid((eye[0], eye[1] - 0.055, eye[2]), (0.04, 0.04, 0.04), Paint((0.05, 0.05, 0.05)))
        )
        base: Vector = (x + side * 0.6 * size, y + 0.2 * size, top + 0.6 * size)
        if ears == 0:
            parts.append(
                rod(
                    base,
                    (base[0] + side * 0.12, base[1], base[2] + length),
                    0.07,
                    0.01,
                    Paint((0.95, 0.9, 0.75)),
                )
            )
        elif ears == 1:
            parts.append(
                ellipsoid((base[0], base[1], base[2] + 0.3 * length), (0.07, 0.04, 0.5 * length), plain)
            )
        else:
            parts.append(rod(base, (base[0], base[1], base[2] + length), 0.025, 0.025, plain))
            parts.append(ellipsoid((base[0], base[1], base[2] + length), (0.07, 0.07, 0.07), coat))
    return parts


def _tail(dice: Dice, long: float, z: float, coat: Paint) -> list[Part]:
    root: Vector = (0.0, 0.85 * long, z + 0.1)
    end: Vector = (dice.uniform(-0.25, 0.25), long + dice.uniform(0.25, 0.5), z + dice.uniform(-0.2, 0.5))
    parts = [rod(root, end, 0.06, 0.025, coat)]
    if dice.chance(0.5):
        parts.append(ellipsoid(end, (0.1, 0.1, 0.1), Paint(coat.second)))
    else:
        parts.append(ring((end[0] - 0.04, end[1], end[2]), (end[0] + 0.04, end[1], end[2]), 0.13, 0.07, coat))
    return parts
