"""Sets of rated texts: their original formats, in miniature, and what is said when a file is missing."""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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


@pytest.fixture
def load():
    """Miniatures are smaller than what is expected, which is said."""

    def load_small(name, folder):
        with pytest.warns(UserWarning, match=r"holds \d+ texts where (at least )?[\d,]+ were expected: is it whole\?"):
            return datasets.load(name, folder)

    return load_small


def test_large_movie(tmp_path, load):
    files = {
        "aclImdb/train/pos/0_9.txt": b"Loved it.<br />Really.",
        "aclImdb/test/neg/3_2.txt": b"Bad.",
        "aclImdb/train/unsup/1_0.txt": b"Unrated.",
        "aclImdb/README": b"About.",
    }
    write_tar(tmp_path / "aclImdb_v1.tar.gz", files)
    found = load("largemovie", tmp_path)
    assert found.texts == ["Loved it.\nReally.", "Bad."]
    assert found.ranks.tolist() == [9, 2]


def test_movie_review(tmp_path, load):
    files = {
        "scaledata/Ann+Lee/subj.Ann+Lee": b"weak \x85 but short\ngrand\n",
        "scaledata/Ann+Lee/label.4class.Ann+Lee": b"0\n3\n",
        "scaledata/Ann+Lee/id.Ann+Lee": b"11\n12\n",
    }
    write_tar(tmp_path / "scale_data.tar.gz", files)
    found = load("moviereview", tmp_path)
    assert found.texts == ["weak \x85 but short", "grand"]
    assert found.ranks.tolist() == [1, 4]


def test_treebank(tmp_path, load):
    with zipfile.ZipFile(tmp_path / "stanfordSentimentTreebank.zip", "w") as archive:
        folder = "stanfordSentimentTreebank"
        archive.writestr(f"{folder}/datasetSentences.txt", "sentence_index\tsentence\n1\tA cafÃ© -LRB- fine -RRB-\n2\tDull\n")
        archive.writestr(f"{folder}/dictionary.txt", "Dull|0\nA café ( fine )|1\nfine|2\n")
        archive.writestr(f"{folder}/sentiment_labels.txt", "phrase ids|sentiment values\n0|0.1\n1|0.9\n2|0.6\n")
    found = load("treebank", tmp_path)
    assert found.texts == ["A café ( fine )", "Dull"]
    assert found.ranks.tolist() == [5, 1]


HOTEL = b"""<Overall Rating>4
<Avg. Price>$173
<URL>http://example.org

<Author>ann
<Content>Clean room. <b>Quiet</b>.
<Date>Jan 6, 2009
<No. Reader>-1
<Overall>5
<Value>4

<Author>bob
<Content>No rating here
<Overall>-1

<Author>cy
<Content>Noisy
<Overall>2"""


def entity(*reviews):
    return json.dumps({"Reviews": [dict(review) for review in reviews], "ProductInfo": {"ProductID": "B0"}}).encode()


def test_hotels_in_both_formats(tmp_path, load):
    with zipfile.ZipFile(tmp_path / "Review_Texts.zip", "w") as archive:
        archive.writestr("Review_Texts/hotel_1.dat", HOTEL)
        archive.writestr("Review_Texts/readme.pdf", "no review")
    found = load("tripadvisor", tmp_path)
    assert found.texts == ["Clean room. <b>Quiet</b>.", "Noisy"]
    assert found.ranks.tolist() == [5, 2]
    with tarfile.open(tmp_path / "TripAdvisorJson.tar.bz2", "w:bz2") as archive:
        content = entity(
            {"Ratings": {"Overall": "4.0", "Rooms": "3"}, "Title": "Nice", "Content": "Near the station"}, {"Content": "?"}
        )
        member = tarfile.TarInfo("./json/100.json")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    found = load("tripadvisor", tmp_path)
    assert (found.texts, found.ranks.tolist()) == (["Nice\nNear the station"], [4])


@pytest.mark.parametrize(
    ("name", "folder"),
    [("video", "video_surveillance"), ("tablets", "tablets"), ("mobilephone", "mobilephone"), ("cameras", "cameras")],
)
def test_products_of_a_category(name, folder, tmp_path, load):
    with zipfile.ZipFile(tmp_path / "AmazonReviews.zip", "w") as archive:
        review = {"Overall": "1.0", "Title": "Broke", "Content": f"about {folder}", "ReviewID": "R1"}
        archive.writestr(f"AmazonReviews/{folder}/B0.json", entity(review, {"Overall": "None", "Content": "no"}))
        archive.writestr("AmazonReviews/laptops/B1.json", entity({"Overall": "5.0", "Title": "Other", "Content": "laptop"}))
    found = load(name, tmp_path)
    assert (found.texts, found.ranks.tolist()) == ([f"Broke\nabout {folder}"], [1])


def test_unpacked_folders(tmp_path, load):
    (tmp_path / "AmazonMp3" / "a").mkdir(parents=True)
    (tmp_path / "AmazonMp3" / "a" / "B0.json").write_bytes(entity({"Overall": "3.0", "Content": "It plays"}))
    assert load("amazonmp3", tmp_path).texts == ["It plays"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("electronics", "reviews_Electronics_5.json.gz"),
        ("healthcare", "reviews_Health_and_Personal_Care_5.json.gz"),
        ("appsandroid", "reviews_Apps_for_Android_5.json.gz"),
        ("homekitchen", "reviews_Home_and_Kitchen_5.json.gz"),
    ],
)
def test_products_by_line(name, file, tmp_path, load):
    lines = [
        json.dumps({"reviewerID": "A", "asin": "B", "reviewText": "Works\nwell", "overall": 5.0, "summary": "Good"}),
        "{'asin': 'B', 'reviewText': \"Doesn't\", 'overall': 1.0, 'summary': 'Bad'}",
    ]
    (tmp_path / file).write_bytes(gzip.compress("\n".join(lines).encode()))
    found = load(name, tmp_path)
    assert found.texts == ["Good\nWorks\nwell", "Bad\nDoesn't"]
    assert found.ranks.tolist() == [5, 1]


def test_code_in_a_file_is_not_run(tmp_path):
    line = b"__import__('os').mkdir('ran')"
    (tmp_path / "reviews_Electronics_5.json.gz").write_bytes(gzip.compress(line))
    with pytest.raises(ValueError, match=r"reviews_Electronics_5\.json\.gz is not the file that .* offers, or is damaged"):
        datasets.load("electronics", tmp_path)


def test_yelp(tmp_path, load):
    write_tar(
        tmp_path / "yelp_review_full_csv.tgz", {"yelp_review_full_csv/train.csv": b'"5","Great\\nfood, ""really"""\n"1","Bad"\n'}
    )
    found = load("yelpreview", tmp_path)
    assert (found.texts, found.ranks.tolist()) == (['Great\nfood, "really"', "Bad"], [5, 1])
    line = json.dumps({"type": "review", "stars": 4, "text": "Good\nsoup", "review_id": "x"})
    (tmp_path / "yelp_academic_dataset_review.json").write_text(line + "\n", encoding="utf-8")
    found = load("yelpreview", tmp_path)
    assert (found.texts, found.ranks.tolist()) == (["Good\nsoup"], [4])


def test_doctor_quality(tmp_path, load):
    (tmp_path / "DoctorQuality.tsv").write_text("5\t医生 很 好\n1\t没有 回答\n", encoding="utf-8")
    found = load("doctorquality", tmp_path)
    assert (found.texts, found.ranks.tolist()) == (["医生 很 好", "没有 回答"], [5, 1])


def test_balanced_samples():
    found = datasets.RatedTexts("made", [f"text {n}" for n in range(100)], np.array([1] * 70 + [2] * 20 + [3] * 10)).balanced()
    assert np.bincount(found.ranks).tolist() == [0, 10, 10, 10]
    assert len(set(found.texts)) == 30
    assert found.texts == sorted(found.texts, key=lambda text: int(text.split()[1]))


@pytest.mark.parametrize("name", datasets.SOURCES)
def test_every_set_says_what_it_needs_and_where_it_is(name, tmp_path):
    source = datasets.SOURCES[name]
    with pytest.raises(
        FileNotFoundError, match=rf"^{name} needs {re.escape(source.files[0])}.* get it from {re.escape(source.page)}"
    ):
        datasets.load(name, tmp_path)


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


@pytest.fixture
def index(monkeypatch):
    """A package index that pip is configured for; its pages are set by tests."""

    class Handler(BaseHTTPRequestHandler):
        pages = {}  # noqa: RUF012

        def do_GET(self):
            kind, content = self.pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        yield Handler.pages
        server.shutdown()
        thread.join()


# A build backend in the distribution itself, so that pip needs nothing else to learn its name.
BACKEND = b"""
import os, pathlib

def prepare_metadata_for_build_wheel(folder, settings=None):
    info = pathlib.Path(folder, "vaderSentiment-3.3.2.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: vaderSentiment\\nVersion: 3.3.2\\n")
    return info.name
"""
PROJECT = b"""
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def offered(tmp_path, monkeypatch, index):
    """A small distribution of the expected name, in the index."""
    top = "vaderSentiment-3.3.2"
    metadata = b"Metadata-Version: 2.1\nName: vaderSentiment\nVersion: 3.3.2\n"
    files = {"PKG-INFO": metadata, "pyproject.toml": PROJECT, "backend.py": BACKEND}
    content = write_tar(tmp_path / "offered.tar.gz", {f"{top}/{name}": file for name, file in files.items()})
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(datasets, "RATED_SENTENCES_SHA256", digest)
    link = f'<a href="../../files/{datasets.RATED_SENTENCES}#sha256={digest}">{datasets.RATED_SENTENCES}</a>'
    index["/simple/vadersentiment/"] = "text/html; charset=utf-8", f"<html><body>{link}</body></html>".encode()
    index[f"/files/{datasets.RATED_SENTENCES}"] = "application/gzip", content
    return content


def test_sentences_come_from_the_index_of_pip(tmp_path, index, offered):
    path = datasets.fetch_rated_sentences(tmp_path / "new")
    assert path == tmp_path / "new" / datasets.RATED_SENTENCES
    assert path.read_bytes() == offered
    index.clear()
    assert datasets.fetch_rated_sentences(tmp_path / "new") == path  # downloaded once


@pytest.mark.parametrize("is_told", [True, False], ids=["other digest", "other content"])
def test_index_with_another_file(tmp_path, monkeypatch, index, offered, is_told):
    """Nothing of it is unpacked or run, and nothing is kept."""
    if is_told:
        monkeypatch.setattr(datasets, "RATED_SENTENCES_SHA256", 64 * "0")
    else:
        index[f"/files/{datasets.RATED_SENTENCES}"] = "application/gzip", b"something else"
    with pytest.raises(datasets.OfflineError, match=r"3\.2\.tar\.gz cannot be downloaded: THESE PACKAGES DO NOT MATCH THE HASHES"):
        datasets.load("sentences", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("variable", "value"), [("PIP_NO_INDEX", "1"), ("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")])
def test_offline(tmp_path, monkeypatch, index, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(datasets.OfflineError, match="cannot be downloaded: No matching distribution found for vader") as raised:
        datasets.load("sentences", tmp_path / "new")
    assert "secret" not in str(raised.value)
    assert not (tmp_path / "new").exists()


def test_no_pip(tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('No module named pip')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(datasets.OfflineError, match=r"cannot be downloaded: No module named pip$"):
        datasets.load("sentences", tmp_path / "new")


def test_pip_that_does_not_end(tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(datasets, "PATIENCE", 0.5)
    with pytest.raises(datasets.OfflineError, match=r"cannot be downloaded: pip took more than 0\.5 seconds$"):
        datasets.load("sentences", tmp_path / "new")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"largemovie needs aclImdb_v1\.tar\.gz in .*: get it from ai\.stanford"):
        datasets.load("largemovie", tmp_path)
    with pytest.raises(ValueError, match=r"name must be one of amazonmp3, .* Got 'imdb'"):
        datasets.load("imdb")


def test_generated_reviews_are_the_same_every_time():
    first, second = datasets.load("generated"), datasets.load("generated")
    assert first.texts == second.texts
    assert np.all(np.bincount(first.ranks, minlength=6)[1:] > 100)
