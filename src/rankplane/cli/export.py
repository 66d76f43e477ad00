"""The command export: a model in the format of another program."""

import os

from rankplane import modelfile, onnx
from rankplane.cli.commands import check_outputs, in_bytes


def export(model_path: str, output: str) -> None:
    """Write a model as an ONNX graph, and say what goes in and what comes out."""
    check_outputs([output], [model_path])
    model, _ = modelfile.open_model(model_path)
    graph = onnx.save_model(model, output)
    print(f"Written: {output} ({in_bytes(os.path.getsize(output))})")
    for heading, tensors in (("inputs", graph.graph.input), ("outputs", graph.graph.output)):
        print(f"{heading}: {', '.join(tensor.name for tensor in tensors)}")
