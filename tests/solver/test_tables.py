"""The tables, checked against the losses that the models are defined by."""

import numpy as np
import pytest

from rankplane.solver import tables
from reference import loss, soft_dual

ZS = np.linspace(-3, 6, 37)


def hinge(r, C, kind):
    return C * np.maximum(r, 0) ** (2 if kind == "squared_hinge" else 1)


@pytest.mark.parametrize("kind", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.3, 2.0])
def test_demands_are_the_losses(kind, C):
    for z in ZS:
        assert loss(z, tables.be_above(1.0, C, kind)) == pytest.approx(hinge(1 - z, C, kind))
        assert loss(z, tables.be_below(-1.0, C, kind)) == pytest.approx(hinge(1 + z, C, kind))
        assert loss(z, tables.lie_on(2.0, 0.1, C, kind)) == pytest.approx(hinge(abs(z - 2) - 0.1, C, kind))
        assert loss(z, tables.NOTHING) == 0


@pytest.mark.parametrize("C", [0.3, 2.0])
def test_soft_demands_are_the_losses(C):
    for z in ZS:
        assert loss(z, tables.be_above(0.5, C, "logistic")) == pytest.approx(C * np.logaddexp(0, 0.5 - z))
        assert loss(z, tables.be_below(-0.5, C, "logistic")) == pytest.approx(C * np.logaddexp(0, 0.5 + z))
        both_sides = np.logaddexp(0, 1.9 - z) + np.logaddexp(0, z - 2.1)
        assert loss(z, tables.lie_on(2.0, 0.1, C, "logistic")) == pytest.approx(C * both_sides)


def test_a_plane_with_nothing_to_say_lies_on_its_rank():
    """To lie on it costs what one row above and one row below would."""
    whole = tables.lie_on(0.0, 0.0, 1.0, "logistic")
    for z in ZS:
        above_and_below = [tables.be_on_side(is_above, 1.0, "logistic") for is_above in (True, False)]
        assert loss(z, whole) == pytest.approx(sum(loss(z, side) for side in above_and_below))


@pytest.mark.parametrize("demand", [tables.be_above(0, 2.0, "logistic"), tables.lie_on(1.0, 1.7, 0.3, "logistic")])
def test_the_residual_of_a_soft_dual_is_the_inverse_of_the_slope(demand):
    lo, hi, _, e, _, _ = demand
    duals = lo + (hi - lo) * np.linspace(1e-6, 1 - 1e-6, 41)
    residuals = tables.soft_residual(duals, np.tile(demand, (41, 1)))
    np.testing.assert_allclose(soft_dual(residuals, (lo, hi, e)), duals, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "logistic"])
def test_split_demands_add_up(kind):
    whole, halves = tables.npsvor(4, 0.7, 2.0, 0.1, kind), tables.npsvor_split(4, 0.7, 2.0, 0.1, kind)
    for rank in range(4):
        for plane in range(4):
            for z in ZS:
                split = loss(z, halves[rank, 0, plane]) + loss(z, halves[4 + rank, 0, plane])
                assert split == pytest.approx(loss(z, whole[rank, 0, plane]))


def test_who_is_above_what():
    """Signs of the margins: the whole difference between the models."""
    sides = {
        "npsvor": np.sign(tables.npsvor(3, 1, 1, 0.1, "hinge")[:, 0, :, 2]),
        "rest": np.sign(tables.one_against_rest(3, 1, "hinge")[:, 0, :, 2]),
        "pairs": np.sign(tables.ordered_pairs(3, 1, "hinge")[:, 0, :, 2]),
    }
    np.testing.assert_array_equal(sides["npsvor"], [[0, -1, -1], [1, 0, -1], [1, 1, 0]])
    np.testing.assert_array_equal(sides["rest"], [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(sides["pairs"], [[-1, -1], [1, -1], [1, 1]])
    np.testing.assert_array_equal(tables.regression(3, 1, 0.1, "hinge")[:, 0, 0, 2], [1, 2, 3])
    shared = tables.thresholds(3, 1, "hinge")
    assert shared.shape == (3, 2, 1, 6)
    np.testing.assert_array_equal(np.sign(shared[:, :, 0, 2]), sides["pairs"])


def test_own_rank_has_its_own_c():
    table = tables.npsvor(3, 0.5, 2.0, 0.1, "hinge")
    np.testing.assert_array_equal(table[:, 0, :, 1], [[0.5, 0, 0], [2, 0.5, 0], [2, 2, 0.5]])
