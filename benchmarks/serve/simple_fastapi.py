"""The server that tutorials show: FastAPI around a scikit-learn pipeline. Started by uvicorn, which imports ``app``."""

import os

import joblib
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
model = joblib.load(os.environ["BENCHMARK_MODEL"])


class Texts(BaseModel):
    texts: list[str]


@app.post("/predict")
def predict(request: Texts) -> dict[str, list[dict[str, object]]]:
    shares = model.predict_proba(request.texts)
    names = [str(rank) for rank in model.classes_]
    ranks = model.classes_[shares.argmax(axis=1)].tolist()
    return {
        "predictions": [
            {"rank": rank, "probabilities": dict(zip(names, row.tolist(), strict=True))}
            for rank, row in zip(ranks, shares, strict=True)
        ]
    }
