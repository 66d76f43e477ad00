"""Sets of rated texts: their original formats, in miniature, and what is said when a file is missing."""

import hashlib
import io
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest

from rankplane import datasets


def write_tar(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path.read_bytes()


def test_large_movie(tmp_path):
    files = {
        "aclImdb/train/pos/0_9.txt": b"Loved it.<br />Really.",
        "aclImdb/test/neg/3_2.txt": b"Bad.",
        "aclImdb/train/unsup/1_0.txt": b"Unrated.",
        "aclImdb/README": b"About.",
    }
    write_tar(tmp_path / "aclImdb_v1.tar.gz", files)
    found = datasets.load("largemovie", tmp_path)
    assert found.texts == ["Loved it.\nReally.", "Bad."]
    assert found.ranks.tolist() == [9, 2]


def test_movie_review(tmp_path):
    files = {
        "scaledata/Ann+Lee/subj.Ann+Lee": b"weak \x85 but short\ngrand\n",
        "scaledata/Ann+Lee/label.4class.Ann+Lee": b"0\n3\n",
        "scaledata/Ann+Lee/id.Ann+Lee": b"11\n12\n",
    }
    write_tar(tmp_path / "scale_data.tar.gz", files)
    found = datasets.load("moviereview", tmp_path)
    assert found.texts == ["weak \x85 but short", "grand"]
    assert found.ranks.tolist() == [1, 4]


def test_treebank(tmp_path):
    with zipfile.ZipFile(tmp_path / "stanfordSentimentTreebank.zip", "w") as archive:
        folder = "stanfordSentimentTreebank"
        archive.writestr(f"{folder}/datasetSentences.txt", "sentence_index\tsentence\n1\tA cafÃ© -LRB- fine -RRB-\n2\tDull\n")
        archive.writestr(f"{folder}/dictionary.txt", "Dull|0\nA café ( fine )|1\nfine|2\n")
        archive.writestr(f"{folder}/sentiment_labels.txt", "phrase ids|sentiment values\n0|0.1\n1|0.9\n2|0.6\n")
    found = datasets.load("treebank", tmp_path)
    assert found.texts == ["A café ( fine )", "Dull"]
    assert found.ranks.tolist() == [5, 1]


def test_sentences(tmp_path, monkeypatch):
    inner = write_tar(
        tmp_path / "inner.tar.gz",
        {
            "hutto_ICWSM_2014/tweets_GroundTruth.txt": b"1\t2.7\tSo lucky.\r\n2\t-3.1\tSo\tsad.\r\n3\t0.5\tSo so.\r\n",
            "hutto_ICWSM_2014/tweets_anonDataRatings.txt": b"not these",
        },
    )
    outer = write_tar(
        tmp_path / datasets.RATED_SENTENCES, {"vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz": inner}
    )
    with pytest.raises(ValueError, match="is not the expected file"):
        datasets.load("sentences", tmp_path)
    monkeypatch.setattr(datasets, "RATED_SENTENCES_SHA256", hashlib.sha256(outer).hexdigest())
    found = datasets.load("sentences", tmp_path)
    assert found.texts == ["So lucky.", "So\tsad.", "So so."]
    assert found.ranks.tolist() == [5, 1, 3]


def test_offline(tmp_path, monkeypatch):
    def nothing(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "no connection")

    monkeypatch.setattr(datasets.subprocess, "run", nothing)
    with pytest.raises(datasets.OfflineError, match="does not offer"):
        datasets.load("sentences", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"largemovie needs aclImdb_v1\.tar\.gz in .*: download it from ai\.stanford"):
        datasets.load("largemovie", tmp_path)
    with pytest.raises(ValueError, match=r"name must be one of largemovie, .* Got 'imdb'"):
        datasets.load("imdb")


def test_generated_reviews_are_the_same_every_time():
    first, second = datasets.load("generated"), datasets.load("generated")
    assert first.texts == second.texts
    assert np.all(np.bincount(first.ranks, minlength=6)[1:] > 100)
