"""What is chosen for a table, by held-out error."""

import numpy as np
import pytest

from command import complaint
from rankplane import load_model
from rankplane.cli.app import main
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs, Rows
from rankplane.tabular import ColumnEncoder
from rankplane.training.choices import Choices
from rankplane.training.fitting import train


def rows_of(columns, ranks):
    return Rows({name: values.tolist() for name, values in columns.items()}, ranks, np.arange(len(ranks)), {})


def trained(columns, ranks, **choices):
    return train(rows_of(columns, ranks), Inputs("rank", columns=list(columns)), Choices(holdout=0, jobs=1, **choices)).model


def bent(n_rows=200):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, n_rows))
    return {"x": x, "y": y}, np.digitize(x**2 - y, [-0.5, 0.5, 1.5])


def straight(n_rows=200):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, n_rows))
    return {"x": x, "y": y}, np.digitize(x - y + 0.3 * rng.standard_normal(n_rows), [-1, 0, 1])


def skewed(n_rows=300):
    """What counts is the logarithm of a column whose largest values are far away."""
    rng = np.random.default_rng(0)
    log, y = 2 * rng.standard_normal(n_rows), rng.standard_normal(n_rows)
    return {"size": np.exp(log), "y": y}, np.digitize(log + y, [-2, 0, 2])


@pytest.mark.parametrize(
    ("made", "asked", "kernel", "column"),
    [(bent, "auto", "rbf", None), (straight, "auto", "linear", None), (skewed, "linear", "linear", "log")],
)
def test_what_suits_the_table_is_chosen(made, asked, kernel, column):
    model = trained(*made(), kernel=asked)
    assert (model.estimator.kernel, model.first_step.skewed) == (kernel, column)
    chosen = model.metadata["choices"]
    assert (chosen["kernel"], chosen["skewed"]) == (kernel, column or "none")
    for compared in model.metadata["compared"]:
        assert compared["chosen"] in compared["names"]
        simple, other = compared["scores"]
        assert compared["chosen"] == compared["names"][0] or other < simple


def test_what_is_asked_for_is_not_compared():
    model = trained(*bent(), kernel="linear", skewed="none")
    assert model.estimator.kernel == "linear"
    assert model.metadata["compared"] == []


def test_many_rows_keep_planes(monkeypatch):
    monkeypatch.setattr("rankplane.training.kernel_choice.KERNEL_ROWS", 100)
    assert trained(*bent(), C=1.0).estimator.kernel == "linear"


def test_weights_of_ranks_that_a_sample_lacks(monkeypatch):
    monkeypatch.setattr("rankplane.training.kernel_choice.N_COMPARED", 40)
    columns, ranks = bent()
    ranks[:2] = 9  # the first row is in every sample, the second is not
    assert trained(columns, ranks, C=1.0, class_weight="balanced").classes.tolist() == [0, 1, 2, 3, 9]


def test_logarithms_are_for_tables():
    with pytest.raises(InputError, match=r'skewed="log" applies to the columns of a table only'):
        train(rows_of(*bent()), Inputs("rank", ["x"]), Choices(skewed="log"))


def test_choices_are_printed(tmp_path, capsys):
    columns, ranks = skewed()
    path = tmp_path / "t.csv"
    cells = np.column_stack([*columns.values(), ranks])
    path.write_text("size,y,rank\n" + "\n".join(",".join(map(str, row)) for row in cells.tolist()))
    output = tmp_path / "m.rankplane"
    assert main(["train", str(path), "--target", "rank", "-o", str(output)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "logarithms of skewed columns, by mae on held-out rows: columns as they are 0." in printed
    assert main(["predict", str(output), str(path), "--decision", "macro_mae", "-o", str(tmp_path / "p.csv")]) == 0
    options = ["--decision", "qwk", "--class-weight", "balanced"]
    told = complaint(capsys, ["train", str(path), "--target", "rank", "-o", str(output), *options])
    assert "--class-weight has no effect with --decision qwk" in told
    encoder = load_model(output)[0]
    loaded = encoder.transform(columns)
    np.testing.assert_allclose(loaded.toarray(), ColumnEncoder(skewed="log").fit(columns).transform(columns).toarray(), atol=1.0)
    assert encoder.has_skewed_columns


def test_logarithms_keep_the_order_and_leave_the_others():
    columns, _ = skewed()
    encoded = ColumnEncoder(skewed="log", sparse_output=False).fit_transform(columns)
    plain = ColumnEncoder(sparse_output=False).fit_transform(columns)
    np.testing.assert_array_equal(np.argsort(encoded[:, 0]), np.argsort(plain[:, 0]))
    assert abs(encoded[:, 0]).max() < 0.5 * abs(plain[:, 0]).max()
    np.testing.assert_array_equal(encoded[:, 1], plain[:, 1])
    with pytest.raises(ValueError, match=r"skewed must be one of None, 'log'. Got 'sqrt'."):
        ColumnEncoder(skewed="sqrt").fit(columns)
