"""The OpenAPI document is valid, its examples work, and the page about it says the same."""

import re
import subprocess

import pytest
from openapi_spec_validator import validate

from rankplane.serving.models import ServedModel
from rankplane.serving.openapi import document
from rankplane.serving.options import ServerOptions
from rankplane.serving.pages import reference_page


@pytest.fixture(scope="module")
def served(server):
    status, _, found = server.ask("GET", "/openapi.json")
    assert status == 200
    return found


def test_it_is_valid(served, stars):
    validate(served)
    validate(document({"stars": ServedModel.read("stars", str(stars))}, ServerOptions(token="correct-horse-battery")))


def test_examples_work_and_answers_are_as_described(server, served):
    from jsonschema import Draft202012Validator

    def checked(value, name):
        schema = {"$ref": f"#/components/schemas/{name}", "components": served["components"]}
        Draft202012Validator(schema).validate(value)

    examples = served["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert list(examples) == [
        *(
            "stars-text",
            "stars-why",
            "grades-text",
            "grades-rows",
            "grades-why",
            "risk-rows",
            "risk-why",
            "numbers-rows",
            "bent-rows",
        )
    ]
    for example in examples.values():
        checked(example["value"], "Request")
        answer = server.predict(**example["value"])
        checked(answer, "Answer")
        assert ("explanation" in answer["predictions"][0]) == example["value"].get("explain", False)
    for path, name in {"/models": "Models", "/health": "Status", "/ready": "Status"}.items():
        checked(server.ask("GET", path)[2], name)
    checked(server.ask("POST", "/predict", {})[2], "Error")
    assert set(served["paths"]) == {"/predict", "/models", "/health", "/ready", "/metrics"}
    for path, methods in served["paths"].items():
        for method in methods:
            assert server.ask(method.upper(), path, {} if method == "post" else None)[0] in (200, 400)


def test_the_page_says_it_all(server, served):
    status, headers, page = server.ask("GET", "/docs")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "script" not in headers["Content-Security-Policy"]
    assert not re.search(r"https?://(?!127\.0\.0\.1)", page)
    for name, schema in served["components"]["schemas"].items():
        assert f'id="schema-{name}"' in page
        assert all(f"<code>{field}</code>" in page for field in schema["properties"])
    assert all(link in page for link in re.findall(r'href="#([^"]+)"', page))


def test_its_commands_work(server, folder):
    _, _, page = server.ask("GET", "/docs")
    command = re.search(r"<pre><code>(curl .*?)</code></pre>", page, re.DOTALL)[1]
    command = command.replace("&quot;", '"').replace("&#x27;", "'").replace("&amp;", "&")
    done = subprocess.run(["sh", "-c", command.replace("curl", "curl --silent", 1)], capture_output=True, text=True, timeout=60)
    if done.returncode == 127:
        pytest.skip("no curl installed")
    assert '"predictions":[{"rank":' in done.stdout


def test_names_of_a_stranger_are_shown_as_they_are(stars):
    evil = "<script>alert(1)</script>"
    served = ServedModel.read(evil, str(stars))
    page = reference_page(document({evil: served}, ServerOptions())).content.decode()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
