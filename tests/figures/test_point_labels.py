"""Labels that hide neither lines nor each other."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from unweave.figures.point_labels import LabelledLine, label_points


def drawn(lines, inches=(3.0, 1.5)):
    """Lines with their labels; the boxes of the labels and the points of the lines, in pixels."""
    figure = Figure(figsize=inches)
    axes = figure.add_axes((0, 0, 1, 1))
    for line in lines:
        axes.plot(*line.points.T)
    axes.margins(0.1)
    label_points(axes, lines, inches)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in axes.texts}
    return boxes, [axes.transData.transform(line.points) for line in lines]


@pytest.mark.parametrize("seed", range(5))
def test_many_lines_keep_their_labels_apart(seed):
    rng = np.random.default_rng(seed)
    lines = [
        LabelledLine(
            np.stack([np.sort(rng.uniform(size=6)), rng.uniform(size=6)], axis=1),
            [f"{which}{point}" for point in range(6)],
            "black",
        )
        for which in range(5)
    ]
    boxes, places = drawn(lines)
    assert 8 <= len(boxes) <= 30
    assert not [pair for pair in combinations(boxes.values(), 2) if pair[0].overlaps(pair[1])]
    for line in places:
        for start, end in pairwise(line):
            along = start + np.linspace(0, 1, 500)[:, None] * (end - start)
            for box in boxes.values():
                # Digits fill less than the box of their text: nothing runs through its inner half.
                inner = (
                    np.abs(along - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]) < 0.25 * box.size
                ).all(axis=1)
                assert not inner.any()


def test_a_label_is_near_its_point_and_few_points_have_all_labels():
    lines = [
        LabelledLine(np.array([[0.0, 0.0], [1.0, 1.0]]), ["1", "16"], "black"),
        LabelledLine(np.array([[0.5, 0.1]]), ["4"], "red"),
    ]
    boxes, (line, point) = drawn(lines)
    for text, place in (("1", line[0]), ("16", line[1]), ("4", point[0])):
        box = boxes[text]
        assert np.hypot(*(np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]) - place)) < 15


def test_points_without_text_and_empty_lines_are_fine():
    boxes, _ = drawn(
        [
            LabelledLine(np.array([[0.0, 0.0], [1.0, 1.0]]), ["", "2"], "black"),
            LabelledLine(np.empty((0, 2)), [], "red"),
        ]
    )
    assert list(boxes) == ["2"]
