"""Files appear whole, and what is not a file stays what it is."""

import os
import stat

import pytest

from rankplane.files import replacing


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


def test_complaints_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "no" / "such.csv"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "such.csv")

    def write_half():
        with replacing(tmp_path / "out.csv") as file:
            file.write(b"half")
            raise OSError(28, "full")

    with pytest.raises(OSError, match="full") as caught:
        write_half()
    assert caught.value.filename == str(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == []
