"""The estimator and its model, as pyspark.ml has them."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType
from sklearn.pipeline import make_pipeline

from rankplane.distributed.program import Program
from rankplane.docstrings import documented
from rankplane.estimators import NPSVOR
from rankplane.search import CSearchCV
from rankplane.spark import launch
from rankplane.text import TextVectorizer

VECTOR = "size int, indices array<int>, values array<double>"


@documented()
class OrdinalEstimator(Estimator, HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol):  # type: ignore[misc]
    """Fit a model on the rows of a Spark data frame, on all executors at the same time.

    A stage of ``pyspark.ml`` pipelines. ``fit`` returns an :class:`OrdinalModel`.

    Parameters
    ----------
    model : object
        A linear model, or a :class:`rankplane.CSearchCV` of one with ``cv='auto'``. None searches for the best C of an
        :class:`rankplane.NPSVOR` with probabilities. Kept in this process: an estimator cannot be saved, its model can.
    vectorizer : TextVectorizer
        For a column of texts; None is one with default parameters. A column of vectors needs none.
    featuresCol : str
        Column of texts or of vectors.
    labelCol : str
        Column of ranks.
    predictionCol : str
        Column for predictions.
    weightCol : str
        Column of sample weights.
    numWorkers : int
        Number of tasks, which must all find a free slot at the same time.

    See Also
    --------
    OrdinalModel : What it fits.
    rankplane.distributed.fit_shard : What each task does.

    Examples
    --------
    >>> from rankplane.spark import OrdinalEstimator
    >>> estimator = OrdinalEstimator(featuresCol="review", labelCol="stars", numWorkers=4)  # doctest: +SKIP
    >>> model = estimator.fit(reviews)  # doctest: +SKIP
    >>> model.transform(new_reviews).select("prediction").show()  # doctest: +SKIP
    """

    numWorkers = Param(Params._dummy(), "numWorkers", "number of tasks", TypeConverters.toInt)  # noqa: N815 - as Spark names

    def __init__(
        self,
        *,
        model: Any = None,
        vectorizer: TextVectorizer | None = None,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        weightCol: str | None = None,
        numWorkers: int = 1,
    ) -> None:
        super().__init__()
        self.model = CSearchCV(NPSVOR(probability=True, decision="mae")) if model is None else model
        self.vectorizer = TextVectorizer() if vectorizer is None else vectorizer
        self._set(featuresCol=featuresCol, labelCol=labelCol, predictionCol=predictionCol, numWorkers=numWorkers)
        if weightCol is not None:
            self._set(weightCol=weightCol)

    def _fit(self, dataset: DataFrame) -> "OrdinalModel":
        has_texts = isinstance(dataset.schema[self.getFeaturesCol()].dataType, StringType)
        program = Program(make_pipeline(self.vectorizer, self.model) if has_texts else self.model)
        features, labels = plain(dataset, self.getFeaturesCol()), functions.col(self.getLabelCol())
        columns = [features.alias(launch.FEATURES), labels.alias(launch.LABEL)]
        if self.isSet(self.weightCol):
            columns.append(functions.col(self.getWeightCol()).cast("double").alias(launch.WEIGHT))
        content = launch.launch(program, dataset.select(*columns), self.getOrDefault(self.numWorkers))
        model: OrdinalModel = self._copyValues(OrdinalModel(content))
        return model


def plain(dataset: DataFrame, name: str) -> Column:
    """A column of texts as it is; one of vectors as structs, which Arrow knows."""
    if isinstance(dataset.schema[name].dataType, StringType):
        return functions.col(name)

    return functions.udf(lambda vector: parts_of(vector), VECTOR)(functions.col(name))


def parts_of(vector: Any) -> tuple[int, list[int], list[float]]:
    """Size, indices and values of a vector, dense or sparse."""
    if hasattr(vector, "indices"):
        return int(vector.size), vector.indices.tolist(), vector.values.tolist()
    kept = np.flatnonzero(vector.values)
    return len(vector), kept.tolist(), vector.values[kept].tolist()


@documented()
class OrdinalModel(Model, HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol, MLWritable, MLReadable):  # type: ignore[misc]
    """A fitted model as a stage of Spark pipelines.

    ``transform`` adds a column of predictions to a data frame.

    Parameters
    ----------
    content : bytes
        The model file. Not given by users: :class:`OrdinalEstimator` makes models, and ``load`` reads them.

    Attributes
    ----------
    fitted : object
        The model itself, or a pipeline of a :class:`rankplane.TextVectorizer` and the model. It predicts without Spark, and
        ``rankplane.save_model`` writes it to a file.

    See Also
    --------
    OrdinalEstimator : Fits the model.

    Examples
    --------
    >>> from rankplane.spark import OrdinalModel
    >>> model.write().overwrite().save("stars")  # doctest: +SKIP
    >>> OrdinalModel.load("stars").fitted.predict(["great screen"])  # doctest: +SKIP
    """

    numWorkers = OrdinalEstimator.numWorkers  # noqa: N815

    def __init__(self, content: bytes = b"") -> None:
        super().__init__()
        self.content = content

    @cached_property
    def fitted(self) -> Any:
        """The model itself."""
        return launch.model_of(self.content)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        import pandas

        content, is_number = self.content, self.fitted.classes_.dtype.kind in "biuf"
        has_texts = isinstance(dataset.schema[self.getFeaturesCol()].dataType, StringType)
        given = pandas.Series if has_texts else pandas.DataFrame  # as Spark hands on texts and structs

        def predict(batches: Iterator[given]) -> Iterator[pandas.Series]:  # type: ignore[valid-type]
            model = launch.model_of(content)
            for batch in batches:
                found = model.predict(launch.features_of_pandas(batch))
                yield pandas.Series(found.astype(float if is_number else object))

        answer = pandas_udf(predict, "double" if is_number else "string")
        return dataset.withColumn(self.getPredictionCol(), answer(plain(dataset, self.getFeaturesCol())))

    def write(self) -> MLWriter:
        """Write the stage.

        Returns
        -------
        MLWriter
            Its ``save`` writes the stage to a folder.
        """
        return Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Read a stage.

        Returns
        -------
        MLReader
            Its ``load`` reads a stage from a folder.
        """
        return Reader()


class Writer(MLWriter):  # type: ignore[misc]
    """Writes the parameters, and the model file beside them."""

    def __init__(self, instance: OrdinalModel) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        DefaultParamsWriter(self.instance).saveImpl(path)
        pieces = [self.instance.content[i : i + launch.PIECE] for i in range(0, len(self.instance.content), launch.PIECE)]
        frame = spark().createDataFrame(list(enumerate(map(bytearray, pieces))), "place int, piece binary")
        frame.coalesce(1).write.parquet(f"{path}/model")


class Reader(MLReader):  # type: ignore[misc]
    """Reads what `Writer` wrote."""

    def load(self, path: str) -> OrdinalModel:
        rows = spark().read.parquet(f"{path}/model").orderBy("place").collect()
        model = OrdinalModel(b"".join(row["piece"] for row in rows))
        metadata = DefaultParamsReader.loadMetadata(path, spark().sparkContext if hasattr(spark(), "_jsc") else spark())
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def spark() -> SparkSession:
    return SparkSession.builder.getOrCreate()
