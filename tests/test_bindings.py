"""What the core refuses at its border, so that no array and no order of calls reaches memory that is not there.

`tests/fuzz/fuzz_bindings.py` looks for more of these.
"""

import numpy as np
import pyarrow as pa
import pytest

from rankplane import _core
from rankplane.solver.tables import npsvor
from rankplane.text.code_points import _properties, code_points

OPTIONS = {"tol": 0.1, "max_sweeps": 10, "shrinking": True, "seed": 0, "n_threads": 1, "rho": 1.0, "free_offsets": False}
X = np.random.default_rng(0).standard_normal((6, 4))
RANKS = np.array([0, 1, 2] * 2, dtype=np.int32)
TABLE = npsvor(3, 1.0, 1.0, 0.1, "hinge")
NO_COLUMN = 2**32 - 1


def make_solver(ranks=RANKS, weights=None, n_lanes=3, n_cuts=1):
    return _core.dense_solver(X, ranks, weights, n_lanes, n_cuts, _core.Options(**OPTIONS))


def make_kernel_solver(diagonal=None, ranks=RANKS, n_lanes=3):
    return _core.KernelSolver(np.ones(6) if diagonal is None else diagonal, ranks, None, n_lanes, 1, _core.Options(**OPTIONS))


def make_corpus(texts=("a b c", "b c d"), n_threads=1):
    settings = {"analyzer": "word", "min_length": 1, "marks": "", "min_n": 1, "max_n": 1, "n_threads": n_threads}
    corpus = _core.Corpus(code_points(True, None), **settings)
    corpus.add(list(texts), "utf-8", "strict", None)
    return corpus


def mapped(*texts):
    corpus = make_corpus(*texts)
    corpus.map_tokens([], None)
    return corpus


def learn(vocabulary, corpus, max_n=2):
    vocabulary.learn(corpus, max_n=max_n, min_documents=1, counts_occurrences=False, on_progress=None)


def rows(vocabulary, corpus, idf=None, is_learned=False):
    options = _core.MatrixOptions(sublinear_tf=False, norm="l2")
    return _core.tfidf_rows([vocabulary], [corpus], idf=idf, is_learned=is_learned, options=options, on_progress=None)


def hashed_rows(corpus, sizes, n_bits):
    options = _core.MatrixOptions(sublinear_tf=False, norm="")
    return _core.hashed_rows([corpus], sizes=[sizes], n_bits=n_bits, options=options, on_progress=None)


def make_vocabulary(*texts):
    vocabulary = _core.Vocabulary()
    learn(vocabulary, mapped(*texts))
    vocabulary.choose_columns(1, 1e9)
    return vocabulary


# --- solvers -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [-1, 3, 2**31 - 1])
@pytest.mark.parametrize("with_kernel", [False, True])
def test_rows_of_the_table_must_exist(rank, with_kernel):
    ranks = RANKS.copy()
    ranks[4] = rank
    with pytest.raises(ValueError, match=r"table_rows must be rows of the table\."):
        make_kernel_solver(ranks=ranks).load(TABLE, []) if with_kernel else make_solver(ranks).run(TABLE, [], 3, None)


@pytest.mark.parametrize("field", range(5))
def test_demands_must_make_sense(field):
    table = TABLE.copy()
    table[1, 0, 2, field] = np.nan
    with pytest.raises(ValueError, match="A demand must have lo <= hi, e >= 0, D >= 0 and no NaN"):
        make_solver().run(table, [], 3, None)
    crossed = TABLE.copy()
    crossed[0, 0, 0, :2] = 1, -1
    with pytest.raises(ValueError, match="A demand must have lo <= hi"):
        make_kernel_solver().load(crossed, [])


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_row_weights_must_be_finite_and_not_negative(weight):
    weights = np.ones(6)
    weights[3] = weight
    with pytest.raises(ValueError, match=r"row_weights must be finite and not negative\."):
        make_solver(weights=weights)


@pytest.mark.parametrize(("n_lanes", "n_cuts"), [(0, 1), (1, 0), (2**40, 1), (1, 2**40), (2**63, 2), (2**20, 2**20)])
def test_numbers_of_lanes_and_cuts_are_bounded(n_lanes, n_cuts):
    with pytest.raises(ValueError, match="lane"):
        make_solver(n_lanes=n_lanes, n_cuts=n_cuts)
    with pytest.raises(ValueError, match="lane"):
        _core.KernelSolver(np.ones(6), RANKS, None, n_lanes, n_cuts, _core.Options(**OPTIONS))


def test_nothing_is_asked_of_a_solver_out_of_turn():
    solver = make_solver()
    for ask in (lambda: solver.stretch(2.0, [False] * 3), solver.touch_bounds, lambda: solver.score(np.zeros(1, np.uint32), 0, 1)):
        with pytest.raises(ValueError, match="A solver must be given a table first"):
            ask()
    solver.run(TABLE, [], 3, None)
    assert solver.score(np.zeros(1, np.uint32), 0, 3).shape == (1, 3)
    weights, _ = solver.take_weights(3)
    assert weights.shape == (4, 3)
    for ask in (lambda: solver.take_weights(3), lambda: solver.run(TABLE, [], 3, None), solver.touch_bounds):
        with pytest.raises(ValueError, match="its weights be taken last"):
            ask()
    kernel_solver = make_kernel_solver()
    for ask in (kernel_solver.measure, kernel_solver.touch_bounds):
        with pytest.raises(ValueError, match="A solver must be given a table first"):
            ask()


def test_scores_are_of_lanes_that_exist():
    solver = make_solver()
    solver.run(TABLE, [], 3, None)
    for first, n_wanted in [(0, 4), (4, 0), (2**64 - 1, 2), (0, 2**62)]:
        with pytest.raises(ValueError, match="There are no such lanes"):
            solver.score(np.zeros(2, np.uint32), first, n_wanted)


@pytest.mark.parametrize("factor", [0.5, np.nan])
def test_a_solution_is_stretched_not_shrunk(factor):
    solver = make_solver()
    solver.run(TABLE, [], 3, None)
    with pytest.raises(ValueError, match=r"factor must be at least 1\."):
        solver.stretch(factor, [False] * 3)


def test_kernel_rows_are_picked_once_each():
    solver = make_kernel_solver()
    solver.load(TABLE, [])
    gram = np.eye(6)
    for picks, complaint in [([0, 0, 1, 2, 3, 4], "once"), ([], "at least one row"), ([6], "no such row")]:
        picked = np.array(picks, dtype=np.uint32)
        with pytest.raises(ValueError, match=complaint):
            solver.improve(picked, gram, np.zeros_like(picked))


def test_a_kernel_solver_has_as_many_ranks_as_rows_and_some():
    with pytest.raises(ValueError, match="table_rows must have one or two entries per row"):
        make_kernel_solver(diagonal=np.ones(5))
    with pytest.raises(ValueError, match="There must be at least one row"):
        make_kernel_solver(diagonal=np.ones(0), ranks=RANKS[:0])


def test_arrays_of_another_type_are_refused_not_cast():
    for ranks in (RANKS.astype(np.int64), RANKS.astype(float), np.repeat(RANKS, 2)[::2]):
        with pytest.raises(TypeError):
            make_solver(ranks)
    far = np.array([2**32], dtype=np.int64)
    with pytest.raises(TypeError):
        _core.sparse_scores(np.array([0, 1], np.int32), far, np.ones(1), np.ones((1, 1)), 1)


def test_weights_must_fit_x():
    with pytest.raises(ValueError, match="weights must have one row per column of X"):
        _core.dense_scores(X, np.ones((3, 2)), 1)


def test_a_shape_that_wraps_round_is_too_large():
    tall, wide = np.empty((2**40, 0)), np.empty((0, 2**40))
    with pytest.raises(MemoryError):
        _core.dense_scores(tall, wide, 1)
    nothing = (np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0))
    with pytest.raises(MemoryError):
        _core.row_products(*nothing, *nothing, 2**63)


# --- texts ---------------------------------------------------------------------------------------------------------------------


def test_scores_of_no_planes_are_none_whatever_the_rows():
    X, weights = np.zeros((2**40, 0)), np.zeros((0, 0))
    assert _core.dense_scores(X, weights, 1).shape == (2**40, 0)


def test_counted_tokens_are_not_joined():
    settings = {"analyzer": "char", "min_length": 1, "marks": "", "n_threads": 1}
    corpus = _core.Corpus(code_points(True, None), min_n=1, max_n=2, **settings)
    corpus.add(["abcabc", "bcd"], "utf-8", "strict", None)
    corpus.map_tokens([], None)
    with pytest.raises(ValueError, match="Tokens that are counted are in no order, and cannot be joined"):
        corpus.join_ngrams(1, 2, None)
    with pytest.raises(ValueError, match="A corpus must be read, mapped"):
        make_vocabulary().apply(corpus, None)


def test_a_corpus_goes_through_its_stages_once():
    turn = "A corpus must be read, mapped, learnt from or applied, and written, in turn"
    vocabulary = make_vocabulary()
    read = make_corpus()
    for ask in (lambda: learn(_core.Vocabulary(), read), lambda: vocabulary.apply(read, None), lambda: rows(vocabulary, read)):
        with pytest.raises(ValueError, match=turn):
            ask()
    corpus = mapped()
    for ask in (lambda: corpus.map_tokens([], None), lambda: corpus.add(["a"], "utf-8", "strict", None), corpus.tokens):
        with pytest.raises(ValueError, match=turn):
            ask()
    vocabulary.apply(corpus, None)
    assert len(rows(vocabulary, corpus)[0]) == 3
    for ask in (lambda: rows(vocabulary, corpus), lambda: vocabulary.apply(corpus, None)):
        with pytest.raises(ValueError, match=turn):
            ask()


def test_texts_may_be_added_after_a_look_at_the_tokens():
    corpus = make_corpus()
    assert corpus.tokens() == ["a", "b", "c", "d"]
    corpus.add(["e"], "utf-8", "strict", None)
    corpus.map_tokens([], None)
    vocabulary = _core.Vocabulary()
    learn(vocabulary, corpus, max_n=1)
    vocabulary.choose_columns(1, 1e9)
    assert vocabulary.names() == ["a", "b", "c", "d", "e"]


def test_a_corpus_is_written_in_the_columns_of_its_own_vocabulary():
    small = make_vocabulary(("x",))
    corpus = mapped()
    make_vocabulary().apply(corpus, None)
    with pytest.raises(ValueError, match="the corpus be in its terms"):
        rows(small, corpus)
    not_learnt = mapped(("a b c a b c",) * 9)
    vocabulary = make_vocabulary()
    vocabulary.apply(not_learnt, None)
    with pytest.raises(ValueError, match="more entries than were counted"):
        rows(vocabulary, not_learnt, is_learned=True)


def test_columns_are_chosen_before_they_are_used():
    vocabulary = _core.Vocabulary()
    corpus = mapped()
    learn(vocabulary, corpus)
    assert (vocabulary.n_columns, vocabulary.names(), len(vocabulary.document_counts())) == (0, [], 0)
    with pytest.raises(ValueError, match="must be chosen"):
        rows(vocabulary, corpus)
    with pytest.raises(ValueError, match="must be chosen first"):
        vocabulary.keep_columns(np.zeros(0, np.uint8))


@pytest.mark.parametrize(("min_n", "max_n", "n_bits"), [(0, 1, 8), (2, 1, 8), (1, 1, 0), (1, 1, 31), (1, 1, 64)])
def test_hashing_has_limits(min_n, max_n, n_bits):
    with pytest.raises(ValueError, match="must be"):
        hashed_rows(mapped(), (min_n, max_n), n_bits)


def test_corpora_side_by_side_are_read_together():
    options = _core.MatrixOptions(sublinear_tf=False, norm="")
    together = {"idf": None, "is_learned": False, "options": options, "on_progress": None}
    corpora, vocabularies = [mapped(), mapped(["a"])], [make_vocabulary(), make_vocabulary()]
    for vocabulary, corpus in zip(vocabularies, corpora, strict=True):
        vocabulary.apply(corpus, None)
    with pytest.raises(ValueError, match="must be read together"):
        _core.tfidf_rows(vocabularies, corpora, **together)
    for lists in (([], []), (vocabularies, [mapped()])):
        with pytest.raises(ValueError, match="There must be a"):
            _core.tfidf_rows(*lists, **together)
    with pytest.raises(ValueError, match="as many threads and documents"):
        make_corpus().read_beside([make_corpus(n_threads=2)])
    corpus = make_corpus()
    with pytest.raises(ValueError, match="as many threads and documents"):
        corpus.read_beside([corpus])


def test_characters_longer_than_any_text():
    settings = {"min_length": 1, "marks": "", "n_threads": 1}
    for analyzer, names in (("char", ["b", "bc", "c"]), ("char_wb", [" ", " b", " bc", " bc ", "b", "bc", "bc ", "c", "c "])):
        corpus = _core.Corpus(code_points(True, None), analyzer=analyzer, min_n=1, max_n=2**62, **settings)
        corpus.add(["bc"], "utf-8", "strict", None)
        assert corpus.tokens() == names


def test_ngrams_of_any_length():
    """As many as there are; the room for more is never asked for."""
    parts = hashed_rows(mapped(), (1, 2**62), 20)
    assert parts[0].tolist() == [0, 6, 12]
    vocabulary = _core.Vocabulary()
    learn(vocabulary, mapped(), max_n=2**62)
    vocabulary.choose_columns(1, 1e9)
    assert vocabulary.names() == ["a", "a b", "a b c", "b", "b c", "b c d", "c", "c d", "d"]


def test_any_number_of_threads_is_asked_for_in_vain():
    assert make_corpus(n_threads=2**62).n_documents == 2


def test_code_points_become_few():
    mapped_to = np.arange(0x110000, dtype=np.uint32)
    mapped_to[ord("a")] = 0x110000
    with pytest.raises(ValueError, match="A code point becomes too many"):
        _core.CodePoints(_properties(), mapped_to, [[98] * 65], True)
    with pytest.raises(ValueError, match="maps out of range"):
        _core.CodePoints(_properties(), mapped_to, [], True)


# --- a vocabulary from plain arrays --------------------------------------------------------------------------------------------


def restored(state):
    vocabulary = _core.Vocabulary.__new__(_core.Vocabulary)
    vocabulary.__setstate__(state)
    return vocabulary


def test_a_sound_state_is_taken():
    vocabulary = make_vocabulary()
    assert restored(vocabulary.__getstate__()).names() == vocabulary.names()


@pytest.mark.parametrize("column", [7, 0, 2**31, NO_COLUMN - 1])
def test_columns_are_numbered_one_by_one(column):
    terms, ends, levels = make_vocabulary().__getstate__()
    assert levels[0][2][1] not in (0, 7)
    levels[0][2][1] = column
    with pytest.raises(ValueError, match="The columns are not numbered one by one"):
        restored((terms, ends, levels))


def test_a_damaged_state_is_refused():
    terms, ends, levels = make_vocabulary().__getstate__()
    (_, counts, columns), pairs = levels[0], levels[1]
    for state in [
        (),
        (terms, ends),
        (terms, ends, levels, 1),
        ("text", ends, levels),
        (terms, ends, 3),
        (terms, ends, [3]),
        (terms, ends.astype(np.int32), levels),
        (terms, ends, [(counts, columns)]),
        (terms, ends, [(np.zeros(0, np.uint64), counts[:-1], columns), pairs]),
        (terms, ends, [levels[0], (pairs[0][::-1].copy(), *pairs[1:])]),
        (terms, ends, [levels[0], (pairs[0] + np.uint64(9 << 32), *pairs[1:])]),
    ]:
        with pytest.raises(ValueError, match="The state of the vocabulary is damaged"):
            restored(state)
    for bad_terms, bad_ends in [(terms[:-1], ends), (terms, ends[::-1].copy()), (b"\xc3" + terms[1:], ends)]:
        with pytest.raises(ValueError, match="The terms are damaged"):
            restored((bad_terms, bad_ends, levels))


# --- Arrow ---------------------------------------------------------------------------------------------------------------------


def lying(kind, n, numbers, text):
    """pyarrow looks at the numbers when it makes a column; they are changed afterwards."""
    place = np.zeros_like(numbers)
    column = pa.Array.from_buffers(kind, n, [None, pa.py_buffer(place), pa.py_buffer(text)])
    place[:] = numbers
    return column


def column_of(kind, offsets):
    return lying(kind, len(offsets) - 1, np.array(offsets, dtype="<i4" if kind == pa.string() else "<i8"), b"good value")


def views_of(*numbers):
    return lying(pa.string_view(), len(numbers), np.array(numbers, dtype="<i4"), b"a text of more than 12 bytes")


def tokens_of(column):
    corpus = make_corpus(())
    assert corpus.add_arrow_array(*column.__arrow_c_array__(), None)
    return corpus.tokens()


def test_sound_offsets_are_read():
    assert tokens_of(column_of(pa.string(), [0, 4, 10])) == ["good", "value"]
    assert tokens_of(column_of(pa.large_string(), [0, 4, 10])) == ["good", "value"]
    assert tokens_of(views_of((16, 0, 0, 2))) == ["text", "of", "more", "tha"]


@pytest.mark.parametrize(
    "column",
    [
        column_of(pa.string(), [0, 4, 2]),
        column_of(pa.string(), [-1, 4]),
        column_of(pa.large_string(), [0, 4, 2]),
        column_of(pa.large_string(), [-(2**40), 4]),
        views_of((-1, 0, 0, 0)),
        views_of((16, 0, 1, 0)),
        views_of((16, 0, -1, 0)),
        views_of((16, 0, 0, -1)),
        views_of((16, 0, 0, 13)),
        views_of((2**31 - 1, 0, 0, 2**31 - 1)),
    ],
    ids=["back", "negative", "wide back", "wide negative", "size", "no buffer", "buffer", "place", "beyond", "overflow"],
)
def test_offsets_that_lie_are_refused(column):
    with pytest.raises(ValueError, match="The Arrow array must have buffers and offsets that fit"):
        tokens_of(column)


def test_a_stream_is_read_once():
    stream = pa.chunked_array([["good value"]]).__arrow_c_stream__()
    assert make_corpus(()).add_arrow_stream(stream, None)
    consumed = pa.chunked_array([["good value"]]).__arrow_c_stream__()
    pa.ChunkedArray._import_from_c_capsule(consumed)
    with pytest.raises(ValueError, match="must not have been released"):
        make_corpus(()).add_arrow_stream(consumed, None)
