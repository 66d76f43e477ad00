"""An MLflow flavour: models of this package in MLflow's tracking, registry and serving.

A logged model is a model file, so nothing is pickled, and nothing of it is executed when it is loaded. A file that ``rankplane
train`` wrote knows its columns, so the generic function takes tables as the command line does. Needs the extra ``mlflow``, of which
only public names are used.
"""

import os
import shutil
import sys
import tempfile
from importlib import import_module
from typing import Any

from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.docstrings import Entry, documented
from rankplane.inputs.batches import Batch
from rankplane.inputs.schema import Inputs
from rankplane.modelfile import Model
from rankplane.text import TextVectorizer
from rankplane.validation import check_choice
from rankplane.versions import this_version

__all__ = ["load_model", "log_model", "save_model"]

FLAVOUR = "rankplane"
DATA = "model.rankplane"
METHODS = ("predict", "predict_proba")
SOURCE = "the input"  # what messages call it

PARAMETERS = {
    "model": Entry(
        "object, str or os.PathLike",
        "A fitted model that ``rankplane.save_model`` can save, or the path of a model file, such as ``rankplane train`` writes. "
        "Only the file knows the columns that the model takes.",
    ),
    "path": Entry("str or os.PathLike", "Folder to write, which must be empty or absent."),
    "name": Entry("str", "Name of the logged model."),
    "mlflow_model": Entry("mlflow.models.Model", "The MLflow model to add this flavour to. If None, a new one."),
    "signature": Entry("mlflow.models.ModelSignature", "The inputs and outputs. If None, those of ``input_example``, if given."),
    "input_example": Entry("object", "A few rows, as the generic function takes them."),
    "pip_requirements": Entry("list of str", "Packages to install for the model. If None, this version of rankplane."),
    "extra_pip_requirements": Entry("list of str", "Packages to install in addition."),
    "conda_env": Entry("dict or str", "A conda environment, instead of packages to install."),
    "metadata": Entry("dict", "Plain values for MLflow to store with the model."),
    "pyfunc_predict_fn": Entry(
        "{'predict', 'predict_proba'}",
        "What the generic function returns: ranks, or a DataFrame with a column of probabilities for each rank. It may be changed "
        "when the function is loaded, by ``model_config={'pyfunc_predict_fn': ...}``.",
    ),
    "model_uri": Entry("str", "Where the model is: a folder, or a URI that MLflow knows, such as ``models:/name/1``."),
    "dst_path": Entry("str", "Folder to download the model to. If None, a temporary one."),
    "registered_model_name": Entry("str", "Name to register the model under. If None, it is not registered."),
    "params": Entry("dict", "Parameters to log with the model."),
    "tags": Entry("dict", "Tags to log with the model."),
}


def load_library(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError("The MLflow flavour needs mlflow: pip install 'rankplane[mlflow]'.") from None


@documented(PARAMETERS)
def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    extra_pip_requirements: list[str] | None = None,
    conda_env: Any = None,
    metadata: dict[str, Any] | None = None,
    pyfunc_predict_fn: str = "predict",
) -> None:
    """Save a model as an MLflow model, in a folder.

    See Also
    --------
    log_model : Save it as part of an MLflow run.
    load_model : Load it.
    rankplane.save_model : Save a model to a single file.

    Examples
    --------
    >>> from rankplane import NPSVOR
    >>> from rankplane.mlflow import load_model, save_model
    >>> model = NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3])
    >>> save_model(model, "stars")  # doctest: +SKIP
    >>> load_model("stars").predict([[3.0]])  # doctest: +SKIP
    array([3])
    """
    check_choice("pyfunc_predict_fn", pyfunc_predict_fn, METHODS)
    pyfunc, models = load_library("mlflow.pyfunc"), load_library("mlflow.models")
    mlflow_model = models.Model() if mlflow_model is None else mlflow_model
    if conda_env is None:
        pip_requirements = [f"rankplane=={this_version()}"] if pip_requirements is None else list(pip_requirements)
        pip_requirements += extra_pip_requirements or []
    elif pip_requirements or extra_pip_requirements:
        raise ValueError("conda_env must be None if pip_requirements or extra_pip_requirements are given.")
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, DATA)
        if isinstance(model, str | os.PathLike):
            modelfile.open_model(model)  # raises unless it is a model file
            shutil.copyfile(model, data)
        else:
            modelfile.save_model(model, data)
        function = _load_pyfunc(data, {"pyfunc_predict_fn": pyfunc_predict_fn})
        if signature is None and input_example is not None:
            signature = models.infer_signature(input_example, function.predict(input_example))
        mlflow_model.add_flavor(FLAVOUR, rankplane_version=this_version(), data=f"data/{DATA}")
        pyfunc.save_model(
            path=os.fspath(path),
            loader_module=__name__,
            data_path=data,
            mlflow_model=mlflow_model,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements,
            conda_env=conda_env,
            metadata=metadata,
            model_config={"pyfunc_predict_fn": pyfunc_predict_fn},
        )


@documented(PARAMETERS)
def log_model(
    model: Any,
    name: str = "model",
    *,
    signature: Any = None,
    input_example: Any = None,
    registered_model_name: str | None = None,
    pip_requirements: list[str] | None = None,
    extra_pip_requirements: list[str] | None = None,
    conda_env: Any = None,
    metadata: dict[str, Any] | None = None,
    pyfunc_predict_fn: str = "predict",
    params: dict[str, Any] | None = None,
    tags: dict[str, Any] | None = None,
) -> Any:
    """Log a model to MLflow, as part of the active run or of a new one.

    Returns
    -------
    mlflow.models.model.ModelInfo
        What was logged; its ``model_uri`` is what ``load_model`` takes.

    See Also
    --------
    save_model : Save the same to a folder.
    load_model : Load it.

    Examples
    --------
    >>> from rankplane import NPSVOR
    >>> from rankplane.mlflow import load_model, log_model
    >>> model = NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3])
    >>> info = log_model(model, "stars")  # doctest: +SKIP
    >>> load_model(info.model_uri).predict([[3.0]])  # doctest: +SKIP
    array([3])
    """
    return load_library("mlflow.models").Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        signature=signature,
        input_example=input_example,
        pip_requirements=pip_requirements,
        extra_pip_requirements=extra_pip_requirements,
        conda_env=conda_env,
        metadata=metadata,
        pyfunc_predict_fn=pyfunc_predict_fn,
        params=params,
        tags=tags,
    )


@documented(PARAMETERS)
def load_model(model_uri: str, dst_path: str | None = None) -> Model:
    """Load a model that ``save_model`` or ``log_model`` wrote.

    Returns
    -------
    object
        The model or pipeline, as ``rankplane.load_model`` returns it.

    See Also
    --------
    mlflow.pyfunc.load_model : Load the generic function instead, which takes tables.

    Examples
    --------
    >>> from rankplane.mlflow import load_model
    >>> model = load_model("models:/stars/1")  # doctest: +SKIP
    """
    artifacts, models = load_library("mlflow.artifacts"), load_library("mlflow.models")
    folder = artifacts.download_artifacts(artifact_uri=os.fspath(model_uri), dst_path=dst_path)
    flavours = models.Model.load(folder).flavors
    if FLAVOUR not in flavours:
        raise ValueError(f"model_uri must lead to a model with the flavour {FLAVOUR}. Got {', '.join(flavours)} at {model_uri}.")
    return modelfile.load_model(os.path.join(folder, "data", DATA))


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> "Function":
    """The generic function, for ``mlflow.pyfunc``."""
    method = (model_config or {}).get("pyfunc_predict_fn", "predict")
    check_choice("pyfunc_predict_fn", method, METHODS)
    model, metadata = modelfile.open_model(path)
    return Function(model, Inputs(**metadata["inputs"]) if "inputs" in metadata else None, method)


class Function:
    """Predictions for tables, as MLflow calls them."""

    def __init__(self, model: Any, inputs: Inputs | None, method: str) -> None:
        self.model = model
        self.inputs = inputs
        self.method = method

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        found = getattr(self.model, self.method)(self.features(model_input))
        if self.method == "predict":
            return found
        pandas = import_module("pandas")
        return pandas.DataFrame(found, columns=[str(label) for label in self.model.classes_.tolist()])

    def get_raw_model(self) -> Any:
        """For ``PyFuncModel.get_raw_model``."""
        return self.model

    def features(self, given: Any) -> Any:
        """What the model takes, of a DataFrame by the names of its columns."""
        first = self.model.steps[0][1] if isinstance(self.model, Pipeline) else self.model
        is_frame = hasattr(given, "columns") and hasattr(given, "to_numpy")
        if is_frame and self.inputs is not None and self.inputs.kind != "svmlight":
            columns = {str(name): given[name].tolist() for name in given.columns}
            return self.inputs.features(Batch(columns, list(range(1, len(given) + 1))), SOURCE)
        if isinstance(first, TextVectorizer):
            if is_frame and given.shape[1] != 1:
                raise ValueError(f"{SOURCE} must be a list of texts or one column of them. Got {given.shape[1]} columns.")
            return [text for row in given.to_numpy().tolist() for text in row] if is_frame else list(given)
        # Names that the model has not seen would be warned of.
        return given.to_numpy() if is_frame and not hasattr(first, "feature_names_in_") else given
