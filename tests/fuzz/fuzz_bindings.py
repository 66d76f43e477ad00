"""Arrays of every shape and type, and calls in every order, through the bindings: an exception or an answer, never more.

Run by `make fuzz`, with a core that is built with sanitizers and tells the fuzzer what it reached.
"""

import sys

import atheris
import numpy as np
import pyarrow as pa

from rankplane import _core
from rankplane.text.code_points import code_points

# What the core says no with. Anything else, and every signal, is a crash.
REFUSALS = (ValueError, TypeError, IndexError, MemoryError, UnicodeError, OverflowError, LookupError, ZeroDivisionError)

FLOATS, INDICES = (np.float32, np.float64), (np.int32, np.int64)
ODD_TYPES = (np.float16, np.uint64, np.bool_, np.complex64, object, ">i4", ">f8")
ODD_NUMBERS = (0.0, -0.0, -1.0, 1e-300, 1e300, np.inf, -np.inf, np.nan)
ODD_SIZES = (0, 1, 31, 33, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1)


class Source(atheris.FuzzedDataProvider):
    """Choices made by the fuzzer: mostly sound values, now and then not."""

    def chance(self, of=16):
        return self.ConsumeIntInRange(0, of - 1) == of - 1

    def below(self, bound):
        return self.ConsumeIntInRange(0, bound - 1)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def size(self, most=6):
        return self.pick(ODD_SIZES) if self.chance(32) else self.below(most + 1)

    def length(self, sound):
        return max(0, sound + self.ConsumeIntInRange(-2, 2)) if self.chance(24) else sound

    def number(self):
        return self.pick(ODD_NUMBERS) if self.chance(24) else self.ConsumeIntInRange(-20, 20) / 10

    def text(self):
        return self.ConsumeUnicode(self.below(12)) if self.chance(4) else self.pick(("good", "a b", "not good !", "ΑΣ", "日本", ""))

    def distort(self, array):
        """The same numbers in another type or order in memory."""
        kind = self.below(40)
        with np.errstate(all="ignore"):
            if kind == 0:
                return array.astype(self.pick(ODD_TYPES))
            if kind == 1:
                return np.repeat(array, 2, axis=-1)[..., ::2]
            if kind == 2:
                return array[..., None]
            if kind == 3:
                return array[::-1]
            if kind == 4:
                return np.asfortranarray(array)
            if kind == 5:
                return np.empty((*array.shape[:-1], 0), array.dtype)
            if kind == 6:
                return np.broadcast_to(np.empty(0, array.dtype), (self.pick((2**40, 2**31)), 0))
            if kind == 7:
                array.flags.writeable = False
        return array

    def floats(self, shape, dtype):
        size = int(np.prod(shape))
        with np.errstate(over="ignore"):
            return self.distort(np.array([self.number() for _ in range(size)], dtype=dtype).reshape(shape))

    def numbers(self, size, bound, dtype):
        """Whole numbers below a bound, with exceptions."""
        top = 2 ** (31 if np.dtype(dtype).itemsize == 4 else 63) - 1
        odd = (-1, bound, top, -top) if np.issubdtype(dtype, np.signedinteger) else (bound, top)
        values = [self.pick(odd) if self.chance(64) else self.below(max(bound, 1)) for _ in range(size)]
        return self.distort(np.array(values, dtype=dtype))

    def csr(self, n_rows, n_columns, dtype, index):
        counts = [self.below(4) for _ in range(n_rows)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        if self.chance(24):
            starts[self.below(len(starts))] = self.ConsumeIntInRange(-3, 12)
        n_entries = self.length(sum(counts))
        columns = self.numbers(n_entries, n_columns, index)
        return self.distort(starts), columns, self.floats((self.length(n_entries),), dtype)


def refused(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except REFUSALS:
        return None


def options_of(source):
    return _core.Options(
        tol=source.pick((0.1, 0.0, 1e-3, np.nan, -1.0)),
        max_sweeps=source.pick((0, 1, 5, 40)),
        shrinking=source.ConsumeBool(),
        seed=source.below(100),
        n_threads=source.pick((0, 1, 1, 1, 2, 3)),
        rho=source.pick((1.0, 0.0, 2.0, np.nan)),
        free_offsets=source.ConsumeBool(),
        coupling=source.pick(([], [], [], [1.0], [1.0, 0.5, 0.5, 1.0])),
    )


def table_of(source, n_ranks, n_cuts, n_lanes):
    if max(n_cuts, n_lanes) > 64:
        n_cuts = n_lanes = 1
    shape = [source.length(size) for size in (n_ranks, n_cuts, n_lanes, 6)]
    table = source.floats(tuple(shape), np.float64)
    is_soft = source.chance(3)
    table[..., 5:] = is_soft
    if is_soft:
        table[..., 4:5] = 0
    return table


def try_lane_solver(source):
    dtype, index = source.pick(FLOATS), source.pick(INDICES)
    n_rows, n_columns = source.below(5), source.pick((3, 40))
    n_ranks, n_lanes, n_cuts = 1 + source.below(3), source.size(4), source.size(2)
    demands = source.numbers(source.length(n_rows * source.pick((1, 1, 2))), n_ranks, np.int32)
    weights = source.floats((source.length(n_rows),), dtype) if source.chance(3) else None
    if source.ConsumeBool():
        arrays = (*source.csr(n_rows, n_columns, dtype, index), source.size() if source.chance() else n_columns)
        solver = refused(_core.sparse_solver, *arrays, demands, weights, n_lanes, n_cuts, options_of(source))
    else:
        X = source.floats((n_rows, n_columns), dtype)
        solver = refused(_core.dense_solver, X, demands, weights, n_lanes, n_cuts, options_of(source))
    if solver is None:
        return
    frozen = [source.ConsumeBool() for _ in range(source.below(6))]
    calls = (
        lambda: solver.run(table_of(source, n_ranks, n_cuts, n_lanes), frozen, source.size(), None),
        lambda: solver.run(table_of(source, n_ranks, n_cuts, n_lanes), [], n_lanes, lambda *_: None, source.below(3)),
        lambda: solver.certify(table_of(source, n_ranks, n_cuts, n_lanes), source.size()),
        lambda: solver.start_from(
            source.floats((source.length(n_columns), source.length(n_lanes)), dtype),
            source.floats((source.length(n_cuts), source.length(n_lanes)), dtype),
            source.floats((source.length(len(demands)), source.length(n_cuts), source.length(n_lanes)), dtype),
        ),
        lambda: solver.weights(),
        lambda: solver.duals(),
        lambda: solver.stretch(source.pick((1.0, 2.0, 0.5, np.nan, np.inf)), [False] * min(source.length(n_lanes), 99)),
        lambda: solver.touch_bounds(),
        lambda: solver.score(source.numbers(source.below(4), n_rows, np.uint32), source.size(), source.size()),
        lambda: solver.offsets(),
        lambda: solver.results(),
        lambda: solver.take_weights(source.size()),
    )
    in_any_order(source, calls)


def in_any_order(source, calls):
    """The first one, most likely, and then any."""
    if not source.chance(8):
        refused(calls[0])
    for _ in range(source.below(6)):
        refused(source.pick(calls))


def try_kernel_solver(source):
    n_rows, n_ranks, n_lanes, n_cuts = source.below(5), 1 + source.below(3), source.size(3), source.size(2)
    demands = source.numbers(source.length(n_rows), n_ranks, np.int32)
    weights = source.floats((source.length(n_rows),), np.float64) if source.chance(3) else None
    diagonal = source.floats((source.length(n_rows),), np.float64)
    solver = refused(_core.KernelSolver, diagonal, demands, weights, n_lanes, n_cuts, options_of(source))
    if solver is None:
        return

    def improve():
        n_picks = source.below(n_rows + 1)
        rows = (
            source.distort(np.arange(n_picks, dtype=np.uint32))
            if source.ConsumeBool()
            else source.numbers(n_picks, n_rows, np.uint32)
        )
        cache = source.floats((source.length(n_rows), source.length(n_rows)), source.pick(FLOATS))
        solver.improve(rows, cache, source.numbers(source.length(n_picks), n_rows, np.uint32))

    calls = (
        lambda: solver.load(table_of(source, n_ranks, n_cuts, n_lanes), [source.ConsumeBool() for _ in range(source.below(4))]),
        improve,
        lambda: solver.measure(),
        lambda: solver.stretch(source.pick((1.0, 2.0, 0.5, np.nan)), [False] * min(source.length(n_lanes), 99)),
        lambda: solver.touch_bounds(),
        lambda: solver.score(source.numbers(source.below(4), n_rows, np.uint32), source.size(), source.size()),
        lambda: (solver.offsets(), solver.duals(), solver.results()),
    )
    in_any_order(source, calls)


def try_scores(source):
    dtype, index, n_columns, n_rows = source.pick(FLOATS), source.pick(INDICES), 1 + source.below(6), source.below(5)
    weights = source.floats((source.length(n_columns), source.below(10)), dtype)
    refused(_core.sparse_scores, *source.csr(n_rows, n_columns, dtype, index), weights, source.size())
    refused(_core.dense_scores, source.floats((n_rows, n_columns), dtype), weights, source.size())
    refused(
        _core.row_products,
        *source.csr(n_rows, n_columns, dtype, index),
        *source.csr(source.length(n_columns), 4, dtype, index),
        source.size() if source.chance(8) else 4,
    )


def try_vocabulary_state(source):
    texts = [source.text().encode("utf-8", "surrogatepass") for _ in range(source.below(4))]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64) if texts else np.empty(0, np.int64)
    if len(ends) and source.chance(8):
        ends[source.below(len(ends))] = source.ConsumeIntInRange(-2, 40)
    levels, n_above, first_column = [], len(set(texts)), 0
    for level in range(source.below(4)):
        n = source.length(n_above if level == 0 else source.below(4))
        pairs = sorted({source.below(max(n_above, 1)) << 32 | source.below(len(texts) + 1) for _ in range(n)}) if level else []
        n = len(pairs) if level else n
        columns = np.arange(first_column, first_column + n, dtype=np.uint32)
        if n and source.chance(4):
            columns[source.below(n)] = source.pick((2**32 - 1, 0, n, 1000))
        keys = source.distort(np.array(pairs, dtype=np.uint64))
        levels.append((keys, source.numbers(n, 9, np.uint32), source.distort(columns))[: source.length(3)])
        n_above, first_column = n, first_column + n
    vocabulary = _core.Vocabulary.__new__(_core.Vocabulary)
    state = (b"".join(texts), source.distort(ends), levels)[: source.length(3)]
    try:
        vocabulary.__setstate__(state)
    except REFUSALS:
        return None
    assert len(vocabulary.names()) == vocabulary.n_columns
    assert len(vocabulary.document_counts()) == vocabulary.n_columns
    return vocabulary


def arrow_of(source):
    """A column of strings whose offsets need not make sense; they stay inside the text, which no reader could check."""
    text = b"some text that is long enough"
    n = source.below(4)
    kind = source.below(4)
    null = None if source.ConsumeBool() else pa.py_buffer(bytes([source.below(256)]))
    if kind == 3:
        return pa.array([source.text() * source.below(4) for _ in range(n)], source.pick((pa.string_view(), pa.large_string())))
    if kind == 2:
        numbers = np.zeros((n, 4), dtype="<i4")
        column = pa.Array.from_buffers(pa.string_view(), n, [null, pa.py_buffer(numbers), pa.py_buffer(text), pa.py_buffer(b"")])
        for view in numbers:
            view[:] = source.ConsumeIntInRange(-2, 16), 0, source.ConsumeIntInRange(-1, 2), source.ConsumeIntInRange(-2, 30)
        return column
    offsets = np.zeros(n + 1, dtype=("<i4", "<i8")[kind])
    column = pa.Array.from_buffers((pa.string(), pa.large_string())[kind], n, [null, pa.py_buffer(offsets), pa.py_buffer(text)])
    # pyarrow has looked at them by now.
    offsets[:] = [source.ConsumeIntInRange(-1, len(text)) for _ in range(n + 1)]
    if not source.chance(3):
        offsets.sort()
    return column


def documents_of(source):
    return [
        source.pick((source.text(), source.text().encode("utf-8", "replace"), source.ConsumeBytes(4), None, float("nan"), 3))
        for _ in range(source.below(5))
    ]


def add_arrow(source, corpus):
    array = arrow_of(source)
    if source.ConsumeBool():
        corpus.add_arrow_array(*array.__arrow_c_array__(), None)
    else:
        stream = pa.chunked_array([array]).__arrow_c_stream__()
        for _ in range(1 + source.chance()):
            corpus.add_arrow_stream(stream, None)


def try_corpus(source):
    corpus = refused(
        _core.Corpus,
        code_points(source.ConsumeBool(), None),
        analyzer=source.pick(("word", "char", "char_wb", "?")),
        min_length=source.size(),
        marks=source.pick(("", "!?", "!", "!?#$%")),
        min_n=source.size(),
        max_n=source.below(7),
        n_threads=source.pick((0, 1, 2, 3)),
    )
    if corpus is None:
        return
    vocabulary = try_vocabulary_state(source) if source.chance(4) else None
    vocabulary = vocabulary or _core.Vocabulary()
    norms = ("l2", "l1", "", "?")

    def learn():
        # Not longer: n-grams of all lengths of a long document are many, and would take long in any hands.
        vocabulary.learn(
            corpus, max_n=source.below(6), min_documents=source.below(3), counts_occurrences=source.ConsumeBool(), on_progress=None
        )

    def options():
        return _core.MatrixOptions(
            sublinear_tf=source.ConsumeBool(), binary=source.ConsumeBool(), norm=source.pick(norms), is_double=source.ConsumeBool()
        )

    def rows():
        idf = source.floats((source.length(vocabulary.n_columns),), np.float64) if source.ConsumeBool() else None
        made = _core.tfidf_rows(
            [vocabulary], [corpus], idf=idf, is_learned=source.ConsumeBool(), options=options(), on_progress=None
        )
        check_csr(made, corpus.n_documents, vocabulary.n_columns)

    def hashed_rows():
        n_bits = source.size(20)
        sizes = [(source.size(3), source.size(3))]
        made = _core.hashed_rows([corpus], sizes=sizes, n_bits=n_bits, options=options(), on_progress=None)
        check_csr(made, corpus.n_documents, 2**n_bits)

    def map_tokens():
        terms = None
        if source.chance(3):
            terms = [source.pick((token, None, "", source.text(), 3 if source.chance() else "x")) for token in corpus.tokens()]
            terms += [None] * source.chance()
        corpus.map_tokens([source.text() for _ in range(source.below(3))], terms)

    steps = (
        lambda: corpus.add(
            documents_of(source), source.pick(("utf-8", "latin-1", "utf-16", "??")), source.pick(("strict", "replace", "?")), None
        ),
        lambda: add_arrow(source, corpus),
        lambda: corpus.add_pieces(
            [
                (
                    np.frombuffer(source.text().encode(), dtype=np.uint8),
                    np.array([source.below(9) - 1 for _ in range(2)], dtype=np.int64),
                    np.array([source.below(9) - 1 for _ in range(2)], dtype=np.int64),
                )
                for _ in range(source.below(3))
            ],
            None,
        ),
        lambda: corpus.add_tokens([[source.text() for _ in range(source.below(4))] for _ in range(source.below(4))]),
        map_tokens,
        lambda: corpus.join_ngrams(source.size(), source.below(4), None),
        lambda: vocabulary.apply(corpus, None),
        learn,
        lambda: vocabulary.choose_columns(source.size(), source.number() * 3),
        lambda: vocabulary.keep_columns(source.numbers(source.length(vocabulary.n_columns), 2, np.uint8)),
        rows,
        hashed_rows,
        lambda: (corpus.tokens(), corpus.has_blanks(), corpus.n_documents),
        lambda: (vocabulary.names(), vocabulary.document_counts(), vocabulary.occurrence_counts(), vocabulary.__getstate__()),
    )
    # In their order, with steps left out and repeated; or in none.
    for i in range(len(steps)):
        refused(source.pick(steps) if source.chance(8) else steps[i]) if not source.chance(5) else None


def check_csr(parts, n_rows, n_columns):
    starts, columns, values = parts
    assert len(starts) == n_rows + 1
    assert starts[-1] == len(columns) == len(values)
    assert np.all((columns >= 0) & (columns < n_columns))


TRIALS = (try_lane_solver, try_kernel_solver, try_scores, try_corpus, try_vocabulary_state)


def one_input(data):
    source = Source(data)
    source.pick(TRIALS)(source)


def main():
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
