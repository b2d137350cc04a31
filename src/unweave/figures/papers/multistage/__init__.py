"""The figures and tables of "Improving the reconstruction of disentangled representation learners via multi-stage
modelling", from a study's results.

===========  =====================================  ====================================  ============
figure       what it shows                          what a study needs                    module
===========  =====================================  ====================================  ============
1, 3, 14     images, y and x                        two-stage runs with their weights     ``pictures``
3, 9-13      traversals of c: rows of y and of x    the same; two sizes of c for 9-12     ``pictures``
4, 34, 35    FID, MIG, L1, L2 against beta          these scores, two or more beta        ``scores``
5            M1 to M4                               ``conditioning``                      ``scores``
6            factors predicted from C, Z, C + Z     ``downstream_mlp`` of c, z and all    ``scores``
7, 8         scores against the sizes of c and z    two sizes at one beta                 ``scores``
15, 16       the pendulum: curves, z and the mass   stages on a simulator with factors    ``pendulum``
18, 19, 20   mixture, samples, densities            ``gaussian_mixture``, ``ms_flow``     ``flow``
21-31        codes against noise                    methods with codes and noise: GANs    ``gan``
32, 33       several y of an image, and x of each   two-stage runs with their weights     ``pictures``
37-40        traversals of the ablations M1 to M5   these runs                            ``pictures``
Table 1      FID and MIG at the same capacity       a first stage with as many weights    ``scores``
===========  =====================================  ====================================  ============

Figures 2, 17 and 36 are diagrams. What a study lacks is left out with the reason.
"""

from unweave.figures.papers.multistage import flow, gan, pendulum, pictures, scores
from unweave.figures.papers.paper import Paper, Protocol

PAPER = Paper(
    "Improving the Reconstruction of Disentangled Representation Learners via Multi-Stage Modelling",
    exhibits=(
        *pictures.EXHIBITS,
        *scores.EXHIBITS,
        *pendulum.EXHIBITS,
        *flow.EXHIBITS,
        *gan.EXHIBITS,
    ),
    protocol=Protocol("Srivastava et al."),
)
