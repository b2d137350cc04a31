"""Families of solids from indoors: chairs, desks, desk lamps.

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
    ring,
    rod,
    striped,
)


def chair(dice: Dice) -> list[Part]:
    """A chair: seat, legs or a star base, a back of slats, rungs or a panel, perhaps armrests."""
    hue = dice.uniform(0.0, 1.0)
    frame = Paint(hsv(hue, dice.uniform(0.4, 0.9), dice.uniform(0.35, 0.85)))
    colour, second = hsv(hue + dice.uniform(0.2, 0.8), 0.75, 0.9), hsv(hue + 0.1, 0.25, 0.95)
    cloth = dice.pick((Paint(colour), striped(colour, second, (6.0, 0.0, 0.0)), checked(colour, second, 3.5)))
    w, d, h = dice.uniform(0.42, 0.6), dice.uniform(0.42, 0.55), dice.uniform(0.75, 1.05)
    parts = [box((0.0, 0.0, h), (2 * w, 2 * d, dice.uniform(0.08, 0.2)), cloth)]
    parts += _star_base(dice, h, frame) if dice.chance(0.3) else _four_legs(dice, w, d, h, frame)
    parts += _chair_back(dice, w, d, h, frame, cloth)
    if dice.chance(0.45):
        rest, pad = h + dice.uniform(0.3, 0.45), Paint(hsv(hue, 0.3, 0.3))
        for side in (-w, w):
            parts.append(box((side, -0.05, rest), (0.1, 2 * d - 0.1, 0.06), pad))
            parts.append(rod((side, 0.1 - d, h), (side, 0.1 - d, rest), 0.04, 0.04, frame))
    return parts


def _star_base(dice: Dice, h: float, frame: Paint) -> list[Part]:
    spokes, turn, reach = dice.integer(3, 6), dice.uniform(0.0, 40.0), dice.uniform(0.45, 0.6)
    wheel = Paint((0.15, 0.15, 0.17))
    parts = [rod((0.0, 0.0, 0.15), (0.0, 0.0, h), 0.07, 0.05, frame)]
    for k in range(spokes):
        c, s = circle(turn + 360.0 * k / spokes)
        foot: Vector = (reach * c, reach * s, 0.1)
        parts.append(bar((0.0, 0.0, 0.18), foot, 0.09, 0.06, frame))
        parts.append(ellipsoid((foot[0], foot[1], 0.07), (0.07, 0.07, 0.07), wheel))
    return parts


def _four_legs(dice: Dice, w: float, d: float, h: float, frame: Paint) -> list[Part]:
    splay, thick, thin = dice.uniform(0.0, 0.16), dice.uniform(0.05, 0.09), dice.uniform(0.025, 0.05)
    rung = dice.uniform(0.25, 0.6) * h
    parts = []
    for sx in (-1.0, 1.0):
        for sy in (-1.0, 1.0):
            top: Vector = (sx * (w - 0.08), sy * (d - 0.08), h)
            foot: Vector = (sx * (w - 0.08 + splay), sy * (d - 0.08 + splay), 0.0)
            parts.append(rod(foot, top, thin, thick, frame))
    if dice.chance(0.6):
        parts += [bar((x, -d, rung), (x, d, rung), 0.04, 0.04, frame) for x in (0.08 - w, w - 0.08)]
        parts.append(bar((0.08 - w, 0.0, rung), (w - 0.08, 0.0, rung), 0.04, 0.04, frame))
    return parts


def _chair_back(dice: Dice, w: float, d: float, h: float, frame: Paint, cloth: Paint) -> list[Part]:
    top, lean = h + dice.uniform(0.7, 1.25), dice.uniform(0.0, 0.25)
    style, n = dice.integer(0, 3), dice.integer(3, 6)
    span = top - h

    def at(x: float, t: float) -> Vector:
        return (x, d - 0.05 + lean * t, h + span * t)

    parts = [bar(at(x, 0.0), at(x, 1.0), 0.08, 0.08, frame) for x in (0.05 - w, w - 0.05)]
    if dice.chance(0.4):
        parts += [ellipsoid(at(x, 1.04), (0.075, 0.075, 0.075), cloth) for x in (0.05 - w, w - 0.05)]
    if style == 0:
        parts.append(bar(at(-w, 0.95), at(w, 0.95), 0.06, 0.14, cloth))
        for k in range(n):
            x = (2 * (k + 1) / (n + 1) - 1) * w
            parts.append(bar(at(x, 0.0), at(x, 0.95), 0.06, 0.035, frame))
    elif style == 1:
        for k in range(n):
            t = 0.2 + 0.75 * k / (n - 1)
            parts.append(bar(at(-w, t), at(w, t), 0.04, 0.35 * span / n, cloth if k % 2 else frame))
    elif style == 2:
        parts.append(bar(at(0.0, 0.25), at(0.0, 1.0), 2 * w - 0.1, 0.07, cloth))
    else:
        parts += [bar(at(-s * w, 0.1), at(s * w, 0.9), 0.05, 0.06, cloth) for s in (-0.9, 0.9)]
        parts.append(bar(at(-w, 0.95), at(w, 0.95), 0.06, 0.1, frame))
    return parts


def desk(dice: Dice) -> list[Part]:
    """A desk: striped top, drawers with knobs on one side, legs on the other, things on it."""
    hue, side = dice.uniform(0.0, 1.0), dice.pick((-1.0, 1.0))
    wood, grain = hsv(hue, 0.55, 0.75), hsv(hue + 0.04, 0.6, 0.55)
    w, d, h = dice.uniform(0.8, 1.1), dice.uniform(0.4, 0.55), dice.uniform(0.75, 1.0)
    top = dice.pick(
        (striped(wood, grain, (0.0, 7.0, 0.0)), striped(wood, grain, (4.0, 0.0, 0.0)), Paint(wood))
    )
    leg = Paint(hsv(hue + dice.uniform(0.0, 0.6), 0.6, dice.uniform(0.25, 0.7)))
    parts = [box((0.0, 0.0, h), (2 * w, 2 * d, 0.08), top)]
    count, wide = dice.integer(2, 5), dice.uniform(0.4, 0.65)
    x, high = side * (w - wide / 2), (h - 0.12) / count
    front, knob = Paint(hsv(hue + 0.5, 0.5, 0.85)), Paint((0.95, 0.85, 0.35))
    parts.append(box((x, 0.03, h / 2), (wide, 2 * d - 0.06, h - 0.06), leg))
    for k in range(count):
        z = 0.08 + (k + 0.5) * high
        parts.append(box((x, 0.03 - d, z), (wide - 0.08, 0.06, high - 0.07), front))
        parts.append(ellipsoid((x, -0.03 - d, z), (0.045, 0.045, 0.045), knob))
    for y in (0.06 - d, d - 0.06):
        foot: Vector = (-side * (w - dice.uniform(0.04, 0.2)), y, 0.0)
        parts.append(rod(foot, (-side * (w - 0.06), y, h), 0.035, 0.055, leg))
    if dice.chance(0.5):
        parts.append(box((-side * 0.2, d - 0.04, h - 0.25), (2 * w - wide, 0.04, 0.35), leg))
    return parts + _desk_things(dice, w, d, h + 0.04, side)


def _desk_things(dice: Dice, w: float, d: float, z: float, side: float) -> list[Part]:
    hue = dice.uniform(0.0, 1.0)
    dark, bright = Paint((0.16, 0.17, 0.2)), hsv(hue, 0.8, 0.9)
    parts = []
    if dice.chance(0.6):
        wide, x = dice.uniform(0.25, 0.4), side * dice.uniform(-0.3, 0.3)
        screen = striped((0.55, 0.8, 0.95), bright, (0.0, 0.0, dice.uniform(5.0, 9.0)))
        parts.append(rod((x, d - 0.2, z), (x, d - 0.2, z + 0.2), 0.05, 0.03, dark))
        parts.append(box((x, d - 0.2, z + 0.38), (2 * wide, 0.07, 0.42), dark))
        parts.append(box((x, d - 0.24, z + 0.38), (2 * wide - 0.1, 0.02, 0.32), screen))
    for k in range(dice.integer(1, 5)):
        book, wide = Paint(hsv(hue + 0.37 * k, 0.7, 0.85)), dice.uniform(0.2, 0.34)
        parts.append(box((side * (w - 0.25), 0.1, z + 0.06 * k + 0.03), (wide, 0.4, 0.055), book))
    x = -side * (w - dice.uniform(0.15, 0.4))
    mug = striped(bright, (0.95, 0.95, 0.95), (0.0, 0.0, 9.0))
    parts.append(ring((x, -0.1, z), (x, -0.1, z + 0.2), 0.1, 0.075, mug))
    parts.append(rod((x, 0.0, z), (x + 0.06, 0.05, z + dice.uniform(0.3, 0.5)), 0.02, 0.02, dark))
    return parts


def lamp(dice: Dice) -> list[Part]:
    """A desk lamp: base, two arms with a joint, a conical shade with a bulb, cable and switch."""
    hue = dice.uniform(0.0, 1.0)
    metal, colour = Paint(hsv(hue + 0.5, dice.uniform(0.1, 0.6), dice.uniform(0.3, 0.8))), hsv(hue, 0.8, 0.9)
    second = hsv(hue + dice.uniform(0.1, 0.5), 0.5, 0.95)
    waves = dice.uniform(4.0, 8.0)
    shade = dice.pick(
        (Paint(colour), striped(colour, second, (0.0, 0.0, waves)), checked(colour, second, 4.0))
    )
    base, lean, turn = dice.uniform(0.3, 0.45), dice.uniform(0.2, 0.55), dice.uniform(-0.2, 0.2)
    round_base = dice.chance(0.5)
    size: Vector = (2 * base, 1.5 * base, 0.12)
    parts = [
        rod((0.0, 0.0, 0.0), (0.0, 0.0, 0.12), base, 0.85 * base, shade)
        if round_base
        else box((0.0, 0.0, 0.06), size, shade)
    ]
    knobs = Paint(hsv(hue + 0.33, 0.9, 0.9))
    for k in range(dice.integer(1, 3)):
        parts.append(ellipsoid((0.14 * k - 0.14, -0.5 * base, 0.14), (0.05, 0.05, 0.05), knobs))
    elbow: Vector = (turn, lean, dice.uniform(0.8, 1.2))
    head: Vector = (-0.5 * turn, -dice.uniform(0.3, 0.75), elbow[2] + dice.uniform(0.25, 0.6))
    thick, twin = dice.uniform(0.03, 0.055), dice.uniform(0.05, 0.08)
    for start, end in (((0.0, 0.1, 0.1), elbow), (elbow, head)):
        for offset in (-twin, twin) if dice.chance(0.5) else (0.0,):
            a, b = (start[0] + offset, start[1], start[2]), (end[0] + offset, end[1], end[2])
            parts.append(rod(a, b, thick, thick, metal))
    joint = (elbow[0] - 0.12, elbow[1], elbow[2]), (elbow[0] + 0.12, elbow[1], elbow[2])
    parts.append(rod(joint[0], joint[1], 0.1, 0.1, knobs))
    wide, long = dice.uniform(0.25, 0.42), dice.uniform(0.4, 0.6)
    tip: Vector = (head[0], head[1] - long * dice.uniform(0.25, 0.6), head[2] - long)
    parts.append(rod(head, tip, dice.uniform(0.06, 0.16), wide, shade))
    low = (tip[0] * 1.06 - head[0] * 0.06, tip[1] * 1.06 - head[1] * 0.06, tip[2] * 1.06 - head[2] * 0.06)
    parts.append(ellipsoid(low, (0.5 * wide, 0.5 * wide, 0.5 * wide), Paint((1.0, 0.97, 0.7))))
    if dice.chance(0.6):
        weight: Vector = (elbow[0], elbow[1] + 0.45, elbow[2] - 0.25)
        parts.append(rod(elbow, weight, 0.025, 0.025, metal))
        parts.append(ellipsoid(weight, (0.11, 0.11, 0.11), shade))
    plug: Vector = (dice.uniform(-0.3, 0.3), base + 0.5, 0.03)
    parts.append(rod((0.0, base, 0.04), plug, 0.025, 0.025, Paint((0.15, 0.15, 0.15))))
    return parts
