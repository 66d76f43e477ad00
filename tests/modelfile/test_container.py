"""Files that are not whole are refused in one sentence, and a loaded model does not care what becomes of its file."""

import os
import signal
import struct
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import forging
from conftest import make_ranked
from rankplane import NPSVOR, load_model, modelfile, save_model
from rankplane.modelfile import container
from rankplane.text import TextVectorizer
from reviews import REVIEWS, STARS


def truncate(path):
    os.truncate(path, 100)


def empty(path):
    path.write_bytes(b"")


def overwrite(path):
    path.write_bytes(b"\xff" * path.stat().st_size)


def copy_over(path):
    """As ``cp new live`` does: the same file, emptied, then filled."""
    path.write_bytes(path.with_name("other").read_bytes())


def rename_over(path):
    os.replace(path.with_name("other"), path)


@pytest.mark.parametrize("change", [truncate, empty, overwrite, copy_over, rename_over, os.unlink])
def test_a_model_survives_what_becomes_of_its_file(change, tmp_path):
    """In a process of its own, since a mapped file that is cut would end it, at the next prediction."""
    pipeline = make_pipeline(TextVectorizer(min_df=1), NPSVOR(probability=True)).fit(REVIEWS, STARS)
    path = tmp_path / "m.rankplane"
    save_model(pipeline, path)
    save_model(make_pipeline(TextVectorizer(), NPSVOR(C=9, probability=True)).fit(REVIEWS[3:], STARS[3:]), tmp_path / "other")
    child = os.fork()
    if child == 0:
        result = 9
        try:
            model = load_model(path)
            change(path)
            expected = pipeline.predict_proba(REVIEWS)
            is_same = np.array_equal(model.predict_proba(REVIEWS), expected)
            is_same = is_same and model[0].vocabulary_ == pipeline[0].vocabulary_
            result = 0 if is_same else 1
        finally:
            os._exit(result)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), signal.Signals(os.WTERMSIG(status)).name
    assert os.WEXITSTATUS(status) == 0


def test_a_large_model_survives_truncation_in_another_process(tmp_path):
    """Many pages, none of them read before the file is cut."""
    X, y = make_ranked(50, 20, dtype=np.float32)
    fitted = NPSVOR().fit(X, y)
    fitted.coef_ = np.ones((500_000, 4), dtype=np.float32).T
    fitted.n_features_in_ = 500_000
    save_model(fitted, tmp_path / "m")
    script = (
        "import os, sys, scipy.sparse as sp\n"
        "from rankplane import load_model\n"
        "model = load_model(sys.argv[1])\n"
        "os.truncate(sys.argv[1], 64)\n"
        "print(model.plane_scores(sp.csr_matrix(([2.0], ([0], [499_999])), shape=(1, 500_000)))[0, 3] - model.intercept_[3])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "m"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize("n_left", [0, 64, 3000])
def test_a_file_cut_while_it_is_read_is_refused(n_left, saved, monkeypatch):
    read = container.read_preamble

    def cut_after(name, file, length):
        found = read(name, file, length)
        os.truncate(saved, n_left)
        return found

    monkeypatch.setattr(container, "read_preamble", cut_after)
    with pytest.raises(ValueError, match=r"m\.rankplane changed while it was read: write a new file beside it and rename that"):
        load_model(saved)


def test_a_file_that_is_written_to_while_it_is_read_is_refused(saved, monkeypatch):
    content = saved.read_bytes()
    read = container.read_body

    def write_then_read(file, body):
        os.utime(saved, ns=(0, 0))
        saved.write_bytes(content[:-64] + bytes(64))
        return read(file, body)

    monkeypatch.setattr(container, "read_body", write_then_read)
    with pytest.raises(ValueError, match=r"m\.rankplane changed while it was read"):
        load_model(saved)


def test_replacing_while_others_load_gives_one_model_or_the_other(tmp_path, ranked):
    """What save_model writes is never seen in part, however often it is replaced."""
    path = tmp_path / "m.rankplane"
    models = [NPSVOR(C=C).fit(*ranked) for C in (0.1, 10.0)]
    save_model(models[0], path)
    is_done = threading.Event()

    def replace():
        turn = 0
        while not is_done.is_set():
            turn += 1
            save_model(models[turn % 2], path)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(40):
            found = load_model(path)
            model = next(model for model in models if found.C == model.C)
            np.testing.assert_array_equal(found.coef_, model.coef_)
    finally:
        is_done.set()
        thread.join()


def test_workers_share_the_model_of_their_parent(saved):
    """Arrays are one block of memory that nobody writes to, so that a fork copies none of it."""
    model = load_model(saved)
    owner = model.coef_
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert owner.flags.owndata
    assert not model.coef_.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1


def test_arrays_lie_at_multiples_of_a_cache_line(saved):
    _, arrays = container.read_file(saved)
    assert all(array.ctypes.data % 64 == 0 for array in arrays if array.size)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is a device or a pipe, but a model is read from a file"):
        load_model(tmp_path / "pipe")


def test_a_file_larger_than_memory_is_refused_by_name(tmp_path):
    path = tmp_path / "m.rankplane"
    n_bytes = 2**43
    path.write_bytes(container.PREAMBLE.pack(container.MAGIC, 3, 0, 64, n_bytes).ljust(64, b"\0"))
    os.truncate(path, n_bytes)  # all of it a hole
    with pytest.raises(MemoryError, match=rf"m\.rankplane has {n_bytes} bytes, more than there is memory for"):
        load_model(path)


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes()
    for length in [1, 7, 8, 40, 64, 200, len(content) // 2, len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"m\.rankplane is (truncated|not a model file)"):
            load_model(saved)


def test_a_changed_byte_anywhere_is_noticed(saved):
    content = saved.read_bytes()
    for place in [*range(0, 32), *range(64, len(content), 97)]:
        changed = bytearray(content)
        changed[place] ^= 0x10
        saved.write_bytes(changed)
        with pytest.raises(ValueError, match=r"m\.rankplane (is (damaged|not a model file|truncated)|has format)"):
            load_model(saved)


@pytest.mark.parametrize("content", [b"", b"stars,review\n5,good\n", b"\x80\x04\x95pickle", bytes(500)])
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="foreign is not a model file of rankplane"):
        load_model(path)


def test_newer_formats_are_refused(saved):
    content = bytearray(saved.read_bytes())
    content[8:12] = struct.pack("<I", modelfile.FORMAT + 1)
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"newer than format 3 that this version reads: update rankplane"):
        load_model(saved)


@pytest.mark.parametrize("header", ["[" * 100_000, "[]", "{}", '"model"', '{"model": 1, "arrays": [], "metadata": {}}', "NaN"])
def test_headers_of_another_shape_are_refused(header, tmp_path):
    (tmp_path / "m.rankplane").write_bytes(forging.pack(header.encode(), b""))
    with pytest.raises(ValueError, match=r"m\.rankplane is damaged"):
        load_model(tmp_path / "m.rankplane")


def test_the_sum_is_of_all_that_follows_the_preamble(saved):
    content = saved.read_bytes()
    _, file_format, check, _, n_bytes = container.PREAMBLE.unpack_from(content)
    assert (file_format, check, n_bytes) == (3, zlib.crc32(content[64:]), len(content))
