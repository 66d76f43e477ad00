"""Fits in Spark's local mode. `tests/distributed` has the mathematics."""

import importlib.util
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from conftest import make_ranked
from rankplane import NPSVOR, TextVectorizer
from reviews import make_rows


def why_not():
    if importlib.util.find_spec("pyspark") is None:
        return "there is no pyspark here: pip install 'rankplane[spark]'"
    java = shutil.which("java")
    if java is None or subprocess.run([java, "-version"], capture_output=True).returncode != 0:
        return "there is no Java here, which Spark runs on"
    return ""


pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not() or "-"), pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.default.parallelism", "2")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_texts_from_frame_to_saved_pipeline(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from rankplane.spark import OrdinalEstimator

    rows = make_rows(300)
    frame = spark.createDataFrame([(row["review"], row["stars"]) for row in rows], "review string, stars int")
    estimator = OrdinalEstimator(model=NPSVOR(), vectorizer=TextVectorizer(), featuresCol="review", labelCol="stars", numWorkers=2)
    model = Pipeline(stages=[estimator]).fit(frame)
    found = model.transform(frame).toPandas()
    assert np.abs(found["prediction"] - found["stars"]).mean() < 1
    assert model.stages[0].fitted[0].n_documents_ == 300
    model.write().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline")).transform(frame).toPandas()
    np.testing.assert_array_equal(again["prediction"], found["prediction"])


def test_vectors_weights_and_named_ranks(spark):
    from pyspark.ml.linalg import Vectors

    from rankplane.spark import OrdinalEstimator

    X, y = make_ranked(n_rows=200)
    names = np.array(["low", "mid", "high", "top"])
    rows = [
        (Vectors.sparse(30, row.indices.tolist(), row.data.tolist()), names[rank - 1].item(), 1.0 + i % 2)
        for i, (row, rank) in enumerate(zip(X, y, strict=True))
    ]
    rows[0] = (Vectors.dense(X[0].toarray()[0]), *rows[0][1:])
    frame = spark.createDataFrame(rows, ["features", "label", "weight"])
    estimator = OrdinalEstimator(model=NPSVOR(ranks=names, tol=0.01), weightCol="weight", numWorkers=2)
    model = estimator.fit(frame)
    found = model.transform(frame).toPandas()["prediction"]
    assert model.fitted.classes_.tolist() == names.tolist()
    alone = NPSVOR(ranks=names).fit(X, names[y - 1], 1.0 + np.arange(200) % 2)
    assert np.mean(found == names[y - 1]) > np.mean(alone.predict(X) == names[y - 1]) - 0.1


def test_what_a_task_refuses_is_said(spark):
    from rankplane.spark import OrdinalEstimator

    frame = spark.createDataFrame([("a", 1), ("b", 1)], "features string, label int")
    with pytest.raises(Exception, match="at least two different ranks"):
        OrdinalEstimator(model=NPSVOR(), vectorizer=TextVectorizer(min_df=1), numWorkers=2).fit(frame)
