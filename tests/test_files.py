"""Files appear whole, what is not a file stays what it is, and nobody else's draft is touched."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from rankplane import files
from rankplane.files import replacing

WRITER = "import sys\nfrom rankplane.files import replacing\nwith replacing(sys.argv[1]) as file:\n    file.write(b'x' * 99_999)\n"


def test_links_stay_links(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    os.symlink("real", tmp_path / "link")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="needs pipes with names")
def test_pipes_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing(tmp_path / "pipe") as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def fail(*_, **__):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def write_some(path):
    with replacing(path) as file:
        file.write(b"some")


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_complaints_name_the_file_that_was_asked_for(step, tmp_path, monkeypatch):
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        write_some(tmp_path / "out.csv")
    assert caught.value.filename == str(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == []
    assert not files.drafts


def test_a_missing_folder_and_a_write_that_fails(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError) as caught:
        write_some(tmp_path / "no" / "such.csv")
    assert caught.value.filename == str(tmp_path / "no" / "such.csv")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_some(tmp_path / "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == []


def test_a_failure_of_something_else_keeps_its_name_and_leaves_nothing(tmp_path):
    def read_and_write():
        with replacing(tmp_path / "out.csv") as file:
            file.write(b"half")
            raise OSError(errno.EIO, "broken", "in.csv")

    with pytest.raises(OSError, match="broken") as caught:
        read_and_write()
    assert caught.value.filename == "in.csv"
    assert os.listdir(tmp_path) == []


def test_names_of_any_length(tmp_path):
    for name in ("n" * 255, "é" * 127):
        write_some(tmp_path / name)
        assert os.listdir(tmp_path) == [name]
        os.unlink(tmp_path / name)


@pytest.fixture
def killed_writer(tmp_path):
    """A process that wrote half of out.csv and was killed."""
    waiting = WRITER + "    file.flush()\n    print(flush=True)\n    input()\n"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, tmp_path / "out.csv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        yield child
        child.kill()


@pytest.mark.skipif(os.name == "nt", reason="needs locks")
def test_only_the_drafts_of_the_dead_are_removed(tmp_path, killed_writer):
    [draft] = os.listdir(tmp_path)
    assert draft.startswith(".out.csv.rankplane-")
    assert draft.endswith(".partial")
    others = [".out.csv.rankplane-notes.partial", ".other.csv" + draft.removeprefix(".out.csv"), draft + ".bak"]
    for name in others:
        (tmp_path / name).write_bytes(b"of somebody else")
    write_some(tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == sorted(["out.csv", draft, *others])
    killed_writer.send_signal(signal.SIGKILL)
    killed_writer.wait()
    write_some(tmp_path / "elsewhere.csv")
    assert draft in os.listdir(tmp_path)
    write_some(tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == sorted(["out.csv", "elsewhere.csv", *others])


@pytest.mark.skipif(os.name == "nt", reason="needs locks")
def test_a_writer_that_lives_ends_well_beside_another(tmp_path, killed_writer):
    write_some(tmp_path / "out.csv")
    killed_writer.communicate(b"\n", timeout=60)
    assert (tmp_path / "out.csv").read_bytes() == b"x" * 99_999
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.skipif(os.name == "nt", reason="needs locks")
def test_two_writers_in_one_process(tmp_path):
    with replacing(tmp_path / "out.csv") as first, replacing(tmp_path / "out.csv") as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "out.csv").read_bytes() == b"first"  # the last to end


@pytest.mark.skipif(files.fcntl is None, reason="needs locks")
@pytest.mark.parametrize("where", ["before the lock", "at the lock"])
def test_a_new_draft_that_is_taken_for_an_orphan(where, tmp_path, monkeypatch):
    lock = files.fcntl.flock
    n_locks = 0

    def lock_late(number, how):
        nonlocal n_locks
        n_locks += 1
        if n_locks == 1:
            [draft] = [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]
            os.unlink(draft)
            if where == "at the lock":
                raise BlockingIOError(errno.EAGAIN, "taken")
        lock(number, how)

    monkeypatch.setattr(files.fcntl, "flock", lock_late)
    write_some(tmp_path / "out.csv")
    assert n_locks == 2
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.skipif(files.fcntl is None, reason="needs locks")
def test_without_locks_files_are_written_and_drafts_stay(tmp_path, monkeypatch):
    draft = tmp_path / ".out.csv.rankplane-0123456789abcdef.partial"
    draft.write_bytes(b"perhaps of a living process on another machine")

    def no_locks(number, how):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    write_some(tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == [draft.name, "out.csv"]
    monkeypatch.undo()
    write_some(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.skipif(files.fcntl is None, reason="needs locks")
def test_what_looks_like_a_draft_but_is_no_file(tmp_path):
    name = ".out.csv.rankplane-%s.partial"
    os.mkdir(tmp_path / (name % ("0" * 16)))
    os.mkfifo(tmp_path / (name % ("1" * 16)))
    (tmp_path / "precious").write_bytes(b"kept")
    os.symlink("precious", tmp_path / (name % ("2" * 16)))
    write_some(tmp_path / "out.csv")
    assert (tmp_path / "precious").read_bytes() == b"kept"
    assert (tmp_path / (name % ("0" * 16))).is_dir()
