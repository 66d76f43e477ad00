"""Files that only intent would write, with a right checksum: a sentence that names the file, or a model that answers."""

import random
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import forging
from conftest import make_curved, make_ranked
from rankplane import GPOR, NPSVOR, SVOR, load_model, save_model
from rankplane.modelfile import container
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer
from reviews import REVIEWS, STARS

CURVED, LEVELS = make_curved(48)
TABLE = {"age": [str(20 + i) for i in range(48)], "town": ["Ulm", "Köln", ""] * 16}
MIXED = np.array([[1.0 * i, i % 3] for i in range(48)])
COLUMNS = ColumnTransformer(
    [("a", make_pipeline(SimpleImputer(), StandardScaler()), [0]), ("b", OneHotEncoder(sparse_output=False), [1])]
)
KINDS = {
    "text": (make_pipeline(TextVectorizer(), NPSVOR(probability=True, decision="mae", ranks=[1, 2, 3, 4, 5])), REVIEWS, STARS),
    "compact": (make_pipeline(TextVectorizer(min_df=1), NPSVOR()), REVIEWS, STARS),
    "kernel": (SVOR(kernel="rbf", probability=True), CURVED, LEVELS),
    "process": (GPOR(n_restarts=0), CURVED, LEVELS),
    "sparse kernel": (NPSVOR(kernel="poly"), sp.csr_matrix(np.maximum(CURVED, 0)), LEVELS),
    "table": (make_pipeline(ColumnEncoder(), NPSVOR()), TABLE, LEVELS),
    "columns": (make_pipeline(COLUMNS, NPSVOR()), MIXED, LEVELS),
    "tfidf": (make_pipeline(TfidfVectorizer(), NPSVOR()), REVIEWS, STARS),
}


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """Where to write, and the bytes of a file of every kind."""
    folder = tmp_path_factory.mktemp("forged")
    found = {}
    for kind, (model, X, y) in KINDS.items():
        save_model(clone(model).fit(X, y), folder / "m.rankplane", compact=1.0 if kind == "compact" else None)
        found[kind] = (folder / "m.rankplane").read_bytes()
    return folder / "m.rankplane", found


def check(path, content, X):
    """Whether the file was refused. A model may refuse the rows, by any exception, but must not crash."""
    path.write_bytes(content)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = load_model(path)
        except ValueError as error:
            assert "m.rankplane" in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            return True
        try:
            answers = found.predict(X)
        except Exception as error:
            assert not isinstance(error, SystemError)  # noqa: PT017
        else:
            assert len(answers) == (len(TABLE["age"]) if X is TABLE else X.shape[0] if sp.issparse(X) else len(X))
    return False


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("kind", KINDS)
def test_genuine_files_pass(kind, genuine):
    path, contents = genuine
    header, arrays = forging.unpack(contents[kind])
    assert not check(path, forging.pack(header, arrays), KINDS[kind][1])


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(seed=st.integers(0, 2**32))
def test_forged_headers(kind, seed, genuine):
    path, contents = genuine
    header, arrays = forging.unpack(contents[kind])
    check(path, forging.pack(forging.mutate(header, random.Random(seed)), arrays), KINDS[kind][1])


Changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8)


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(changes=Changes, is_array=st.booleans())
def test_forged_bytes(kind, changes, is_array, genuine):
    """Bytes changed anywhere, or among the arrays only, which the core and scikit-learn work on."""
    path, contents = genuine
    *_, n_header, _ = container.PREAMBLE.unpack_from(contents[kind])
    body = bytearray(contents[kind][64:])
    first = n_header if is_array else 0
    for place, byte in changes:
        body[first + int(place * (len(body) - first))] = byte
    check(path, forging.seal(bytes(body), n_header), KINDS[kind][1])


Part = st.tuples(st.floats(0, 1), st.floats(0, 1))


@QUICK
@given(
    kinds=st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS))),
    one=Part,
    other=Part,
    n_header=st.integers(0, 200),
)
@example(kinds=("text", "text"), one=(0.0, 0.5), other=(1.0, 1.0), n_header=0)
def test_cut_and_spliced_files(kinds, one, other, n_header, genuine):
    """A piece of one file and a piece of another, with the checksum and the length of the whole."""
    path, contents = genuine
    pieces = []
    for kind, (first, last) in zip(kinds, (one, other), strict=True):
        body = contents[kind][64:]
        pieces.append(body[int(first * len(body)) : int(last * len(body))])
    check(path, forging.seal(b"".join(pieces), 64 * n_header), KINDS[kinds[0]][1])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["kind", "params", "fitted", "steps", "array"]), inner)
    ),
    max_leaves=12,
)


@settings(QUICK, max_examples=150)
@given(model=json_values, arrays=json_values, metadata=json_values)
def test_random_trees_are_refused(model, arrays, metadata, genuine):
    path, _ = genuine
    assert check(path, forging.pack({"model": model, "arrays": arrays, "metadata": metadata}, bytes(640)), REVIEWS)


def refused(genuine, kind, change):
    path, contents = genuine
    header, arrays = forging.unpack(contents[kind])
    change(header, header["model"] if kind in ("kernel", "sparse kernel") else header["model"]["steps"][1][1])
    return check(path, forging.pack(header, arrays), KINDS[kind][1])


WRONG = {
    "a class of another list": ("text", lambda header, node: node.update(kind="os.system")),
    "a transformer as a model": ("text", lambda header, node: node.update(kind="StandardScaler")),
    "an unknown parameter": ("text", lambda header, node: node["params"].update(surprise=1)),
    "a parameter out of range": ("text", lambda header, node: node["params"].update(C=-1)),
    "threads": ("text", lambda header, node: node["params"].update(n_jobs=10**6)),
    "an array far off": ("text", lambda header, node: header["arrays"][0].update(offset=10**9)),
    "an array before the file": ("text", lambda header, node: header["arrays"][0].update(offset=-64)),
    "arrays on one place": ("text", lambda header, node: header["arrays"][1].update(offset=0)),
    "an array twice": ("text", lambda header, node: node["fitted"].update(conformity_=node["fitted"]["intercept_"])),
    "objects": ("text", lambda header, node: header["arrays"][0].update(dtype="O")),
    "a negative shape": ("text", lambda header, node: header["arrays"][0].update(shape=[-1])),
    "a huge shape": ("text", lambda header, node: header["arrays"][0].update(shape=[10**30])),
    "a huge empty shape": ("text", lambda header, node: header["arrays"][0].update(shape=[0, 2**62, 2**62])),
    "a shape of True": ("text", lambda header, node: header["arrays"][0].update(shape=[True])),
    "nothing fitted": ("text", lambda header, node: node.pop("fitted")),
    "no such array": ("text", lambda header, node: node["fitted"]["weights"].update(array=99)),
    "no ranks": ("text", lambda header, node: node["fitted"].pop("classes_")),
    "one rank": ("text", lambda header, node: node["fitted"].update(classes_={"objects": [1]})),
    "six ranks": ("text", lambda header, node: node["fitted"].update(classes_={"objects": [1, 2, 3, 4, 5, 6]})),
    "ranks in a square": ("text", lambda header, node: node["fitted"].update(classes_={"objects": [1, 2, 3, 4], "shape": [2, 2]})),
    "no intercept": ("text", lambda header, node: node["fitted"].pop("intercept_")),
    "no calibrator": ("text", lambda header, node: node["fitted"].pop("calibrator")),
    "a calibrator of another shape": (
        "text",
        lambda header, node: header["arrays"][node["fitted"]["calibrator"]["weights"]["array"]].update(shape=[5, 11]),
    ),
    "an unknown calibrator": ("text", lambda header, node: node["fitted"]["calibrator"].update(kind="eval")),
    "a decision of another size": ("text", lambda header, node: node["params"].update(decision=[[0, 1], [1, 0]])),
    "weights of objects": ("text", lambda header, node: node["fitted"]["weights"].update(dtype="O")),
    "weights of halves": ("text", lambda header, node: node["fitted"]["weights"].update(dtype="<f2")),
    "columns": ("text", lambda header, node: node["fitted"].update(n_features_in_=7)),
    "a kernel without rows": ("text", lambda header, node: node["params"].update(kernel="rbf")),
    "planes of another model": ("text", lambda header, node: (node.update(kind="SVR"), node["params"].clear())),
    "10**15 columns": ("compact", lambda header, node: node["fitted"]["weights"].update(n_columns=10**15)),
    "no columns": ("compact", lambda header, node: node["fitted"]["weights"].update(n_columns=0)),
    "a linear model of rows": ("kernel", lambda header, node: node["params"].update(kernel="linear")),
    "no gamma": ("kernel", lambda header, node: node["fitted"].pop("gamma_")),
    "a gamma of text": ("kernel", lambda header, node: node["fitted"].update(gamma_="0.5")),
    "few columns of rows": ("sparse kernel", lambda header, node: node["fitted"]["support_vectors_"]["csr"].__setitem__(3, 1)),
    "negative columns": ("sparse kernel", lambda header, node: node["fitted"]["support_vectors_"]["csr"].__setitem__(3, -1)),
    "mixed up rows": ("sparse kernel", lambda header, node: node["fitted"]["support_vectors_"]["csr"].reverse()),
    "long n-grams": ("text", lambda header, node: header["model"]["steps"][0][1]["params"].update(ngram_range={"tuple": [1, 1]})),
    "steps of one name": ("text", lambda header, node: header["model"]["steps"][1].__setitem__(0, "textvectorizer")),
    "a model first": ("text", lambda header, node: header["model"]["steps"].reverse()),
    "no steps": ("text", lambda header, node: header["model"]["steps"].clear()),
    "a step of text": ("text", lambda header, node: header["model"]["steps"][0].__setitem__(1, "eval")),
    "metadata of text": ("text", lambda header, node: header.update(metadata="a")),
    "no categories": ("table", lambda header, node: header["model"]["steps"][0][1]["fitted"].update(categories_={"dict": []})),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contents_are_refused(name, genuine):
    kind, change = WRONG[name]
    assert refused(genuine, kind, change)


def test_wrong_vocabularies_are_refused(genuine):
    """The core indexes by the numbers of a vocabulary without looking."""

    def counts_as_columns(header, node):
        level = header["model"]["steps"][0][1]["fitted"]["levels"][0]
        level[2], level[1] = level[1], level[2]

    def keys_of_no_terms(header, node):
        levels = header["model"]["steps"][0][1]["fitted"]["levels"]
        levels.reverse()

    def no_idf(header, node):
        header["model"]["steps"][0][1]["fitted"].pop("idf")

    for change in (counts_as_columns, keys_of_no_terms, no_idf):
        assert refused(genuine, "text", change), change.__name__


def test_texts_cannot_multiply(tmp_path, genuine):
    """Ends that go back and forth would make a few bytes any number of long texts."""
    path, contents = genuine
    header, arrays = forging.unpack(contents["tfidf"])
    terms, ends = header["model"]["steps"][0][1]["fitted"]["vocabulary_"]["strings"]
    place, (n_ends,) = header["arrays"][ends]["offset"], header["arrays"][ends]["shape"]
    (n_bytes,) = header["arrays"][terms]["shape"]
    forged = bytearray(arrays)
    forged[place : place + 8 * n_ends] = np.array(([n_bytes, 0] * n_ends)[:n_ends], dtype="<i8").tobytes()
    assert check(path, forging.pack(header, bytes(forged)), REVIEWS)


def test_the_seeds_of_the_fuzzer_run(genuine):
    """One input of the coverage-guided harness, without its engine."""
    import fuzz.fuzz_modelfile as harness

    for seed in sorted(harness.SEEDS.glob("*.rankplane")):
        harness.one_input(seed.read_bytes())
    harness.one_input(b"")
    harness.one_input(container.MAGIC + bytes(100))


def test_an_old_file_is_as_good_as_its_model(tmp_path):
    """What was loaded can be saved again, and is then of the newest format."""
    X, y = make_ranked()
    save_model(NPSVOR(probability=True).fit(X, y), tmp_path / "a")
    save_model(load_model(tmp_path / "a"), tmp_path / "b")
    np.testing.assert_array_equal(load_model(tmp_path / "b").predict_proba(X), load_model(tmp_path / "a").predict_proba(X))
