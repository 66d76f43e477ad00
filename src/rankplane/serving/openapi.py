"""The OpenAPI document of a server, with its own models, columns and limits."""

from collections.abc import Mapping
from typing import Any

from rankplane.serving.models import ServedModel
from rankplane.serving.options import ServerOptions
from rankplane.serving.questions import EXPLAINED_CHARACTERS, EXPLAINED_ROWS
from rankplane.versions import this_version

JSON = "application/json"
Schema = dict[str, Any]
RANK: Schema = {"type": ["string", "number"]}


def link(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def typed(kind: str, description: str, **more: Any) -> Schema:
    return {"type": kind, "description": description, **more}


def listed(items: Schema, description: str, **more: Any) -> Schema:
    return typed("array", description, items=items, **more)


def record(description: str, properties: Schema, required: list[str] | None = None) -> Schema:
    needed = list(properties) if required is None else required
    return typed("object", description, properties=properties, **({"required": needed} if needed else {}))


def content(schema: Schema, kind: str = JSON) -> Schema:
    return {kind: {"schema": schema}}


def operation(name: str, summary: str, description: str, schema: Schema, kind: str = JSON, refusals: str = "") -> Schema:
    refused = {status: {"description": WHEN[status], "content": content(link("Error"))} for status in refusals.split()}
    return {
        "operationId": name,
        "summary": summary,
        "description": description,
        "responses": {"200": {"description": "The answer.", "content": content(schema, kind)}, **refused},
    }


WHEN = {
    "400": "Something in the request cannot be used; the sentence says what.",
    "401": "The token is missing or wrong.",
    "408": "The request did not arrive in time.",
    "413": "The body, a text, or the number of rows is too large.",
    "415": f"The body is not {JSON}.",
    "503": "The server has too much to do, took too long, or is about to end. Retry-After says when to try again.",
}


def request_schema(models: Mapping[str, ServedModel], options: ServerOptions) -> Schema:
    rows = f"At most {options.max_rows:,}."
    row = "An object with a value for each column of the model; null is a missing value, other keys are ignored."
    name = "Name of the model. May be left out if there is only one."
    return record(
        "One of text, texts, row and rows, and what to say about them.",
        {
            "model": {"type": "string", "enum": list(models), "description": name},
            "text": typed("string", f"A text, of at most {options.max_characters:,} characters.", maxLength=options.max_characters),
            "texts": listed({"type": "string"}, f"Texts. {rows}", maxItems=options.max_rows),
            "row": typed("object", f"{row} Columns of texts are joined as in training."),
            "rows": listed({"type": "object"}, f"Rows. {rows}", maxItems=options.max_rows),
            "set": typed(
                "number",
                "Add a set of neighbouring ranks that contains the true one with this probability, such as 0.9.",
                exclusiveMinimum=0,
                exclusiveMaximum=1,
            ),
            "explain": typed(
                "boolean",
                f"Add the reasons. For at most {EXPLAINED_ROWS} rows and {EXPLAINED_CHARACTERS:,} characters, of linear models.",
                default=False,
            ),
        },
        [],
    )


def schemas(models: Mapping[str, ServedModel], options: ServerOptions) -> Schema:
    number, text = {"type": "number"}, {"type": "string"}
    terms = {"type": "array", "items": {"type": "array", "description": "A name and its contribution."}}
    return {
        "Request": request_schema(models, options),
        "Answer": record(
            "Predictions, in the order of the rows.",
            {
                "model": typed("string", "Name of the model that predicted."),
                "version": typed(
                    "string", "Its version: the checksum of its file. All predictions of an answer are of one version."
                ),
                "predictions": listed(link("Prediction"), "One per row."),
            },
        ),
        "Prediction": record(
            "What the model says of one row.",
            {
                "rank": {**RANK, "description": "The predicted rank."},
                "probabilities": typed("object", "The probability of each rank, lowest first.", additionalProperties=number),
                "set": listed(RANK, "The set of ranks, lowest first. Only if asked for."),
                "explanation": {**link("Explanation"), "description": "Only if asked for."},
            },
            ["rank", "probabilities"],
        ),
        "Explanation": record(
            "Why a row lies above or below each boundary between neighbouring ranks.",
            {
                "boundaries": listed(link("Boundary"), "From the lowest to the highest."),
                "decided_at": typed("integer", "The place, from 0, of the boundary beside the predicted rank that is nearest."),
                "above": typed("integer", "How many boundaries the row lies above."),
                "pieces": {**terms, "description": "Of a text: its pieces, with their pull from -1 (down) to 1 (up)."},
                "words": typed("object", "Of a text: how many of its words the model knows."),
            },
            ["boundaries", "decided_at", "above"],
        ),
        "Boundary": record(
            "The score of a row at a boundary: the bias and all contributions add up to it.",
            {
                "lower": {**RANK, "description": "The rank below."},
                "upper": {**RANK, "description": "The rank above."},
                "score": typed("number", "Positive above the boundary."),
                "bias": typed("number", "The score of a row without features."),
                "up": {**terms, "description": "The largest positive contributions."},
                "down": {**terms, "description": "The largest negative contributions."},
                "rest": typed("number", "The sum of all other contributions."),
            },
        ),
        "Models": record(
            "What is served.",
            {
                "models": listed(link("Model"), "The models."),
                "limits": typed("object", "How much a request may hold.", additionalProperties=number),
            },
        ),
        "Model": record(
            "A model.",
            {
                "name": typed("string", "The name to use in requests."),
                "version": typed("string", "The checksum of its file."),
                "kind": typed("string", "What it takes.", enum=["text", "table", "mixed", "numbers"]),
                "target": typed("string", "What its ranks are of."),
                "ranks": listed(RANK, "Lowest first."),
                "columns": listed({"type": "object"}, "Columns of its rows, with their types and categories."),
                "model": typed("string", "The kind of model."),
                "decision": typed("string", "How the rank is chosen from the probabilities."),
                "explains": typed("boolean", "Whether it can explain its predictions."),
                "trained": typed("object", "When, on how many rows, and by which version."),
                "measured": {"type": ["object", "null"], "description": "Its errors on rows held out of training."},
                "loaded": typed("string", "When its file was read.", format="date-time"),
            },
        ),
        "Status": record("How the server is doing.", {"status": text}),
        "Error": record("Why there is no other answer.", {"error": typed("string", "One sentence.")}),
    }


def examples(models: Mapping[str, ServedModel]) -> Schema:
    """Requests that work here."""
    found: Schema = {}
    for name, served in models.items():
        model = {} if len(models) == 1 else {"model": name}
        columns = served.description["columns"]
        row = {column["name"]: example_value(column) for column in columns} or {"1": 0.5, "7": 2}
        if served.kind == "text":
            found[f"{name}-text"] = {
                "summary": f"A text, for {name}",
                "value": {**model, "text": "Works as it should.", "set": 0.9},
            }
        if served.kind != "text" or len(columns) > 1:
            found[f"{name}-rows"] = {"summary": f"Rows, for {name}", "value": {**model, "rows": [row]}}
        if served.explains:
            given = {"text": "Not good at all."} if served.kind == "text" else {"row": row}
            found[f"{name}-why"] = {"summary": f"With the reasons, for {name}", "value": {**model, **given, "explain": True}}
    return found


def example_value(column: Schema) -> Any:
    if column["type"] == "list":
        return [0] * column["places"]
    plain = {"text": "Good value", "number": 1, "date": "2026-01-31"}
    return plain.get(column["type"]) or next(iter(column.get("categories", [])), None)


def document(models: Mapping[str, ServedModel], options: ServerOptions) -> Schema:
    host = f"[{options.host}]" if ":" in options.host else options.host
    asked = operation("predict", "Predict ranks", PREDICT, link("Answer"), refusals="400 401 408 413 415 503")
    asked["requestBody"] = {"required": True, "content": {JSON: {"schema": link("Request"), "examples": examples(models)}}}
    plain = {"type": "string"}
    paths: Schema = {
        "/predict": {"post": asked},
        "/models": {
            "get": operation(
                "models", "What is served", "The models, and how much a request may hold.", link("Models"), refusals="401"
            )
        },
        "/health": {"get": operation("health", "Whether the process lives", "Answers as long as the server runs.", link("Status"))},
        "/ready": {
            "get": operation(
                "ready", "Whether to send requests", "Answers 503 once the server is about to end.", link("Status"), refusals="503"
            )
        },
        "/metrics": {"get": operation("metrics", "Counts, for Prometheus", METRICS, plain, "text/plain", refusals="401")},
    }
    for path in paths.values():
        for found in path.values():
            if "401" not in found["responses"]:
                found["security"] = []
    described: Schema = {
        "openapi": "3.1.0",
        "info": {"title": f"Predictions of {', '.join(models)}", "version": this_version(), "description": ABOUT},
        "servers": [{"url": f"http://{host}:{options.port}"}],
        "paths": paths,
        "components": {"schemas": schemas(models, options)},
    }
    if options.token is not None:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


ABOUT = (
    "Send texts or rows, get predicted ranks with their probabilities. "
    "Every refusal has a body with one sentence in the field error."
)
PREDICT = (
    "Predicts the rank of one text or row, or of many. Small requests that arrive together are predicted together. "
    "A model whose file is replaced is taken into use without an interruption; the version in an answer says which one predicted."
)
METRICS = "Requests, rows, predicted ranks, seconds and sizes of batches, over all processes."
