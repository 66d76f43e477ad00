"""Pages for people: complete in one file, with a policy that lets the browser run and load nothing else."""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from starlette.responses import Response

from rankplane.report.markup import stylesheet

FOLDER = Path(__file__).with_name("page")
HTML = "text/html; charset=utf-8"
METHODS = ("get", "post")


def source_of(text: str) -> str:
    """How a policy names an inline style or script: by its digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True)
class Page:
    content: bytes
    headers: dict[str, str]

    @classmethod
    def of(cls, template: str, style: str, script: str = "") -> "Page":
        """A page that runs and shows only what it was made of, and talks to its own server only."""
        parts = template.replace("@style@", style).replace("@script@", script)
        allowed = ["default-src 'none'", f"style-src {source_of(style)}", "img-src data:", "base-uri 'none'", "form-action 'none'"]
        allowed += ["frame-ancestors 'none'", *([f"script-src {source_of(script)}", "connect-src 'self'"] if script else [])]
        headers = {
            "Content-Security-Policy": "; ".join(allowed),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        return cls(parts.encode(), headers)

    def response(self) -> Response:
        return Response(self.content, headers=self.headers, media_type=HTML)


def part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def try_page() -> Page:
    return Page.of(part("try.html"), stylesheet("base.css") + part("try.css"), part("csv.js") + part("try.js"))


def reference_page(document: dict[str, Any]) -> Page:
    """The OpenAPI document as a page."""
    operations = [
        operation_section(path, method, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]
    schemas = [schema_section(name, schema) for name, schema in document["components"]["schemas"].items()]
    info = document["info"]
    template = part("docs.html")
    for name, value in {
        "title": escape(info["title"]),
        "version": escape(info["version"]),
        "about": paragraphs(info["description"]),
        "operations": "".join(operations),
        "schemas": "".join(schemas),
    }.items():
        template = template.replace(f"@{name}@", value)
    return Page.of(template, stylesheet("base.css") + part("docs.css"))


def paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n"))


def operation_section(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    anchor = f"{method}-{path.strip('/').replace('.', '-') or 'page'}"
    body = operation.get("requestBody", {}).get("content", {})
    examples = [
        f"<h4>{escape(example['summary'])}</h4><pre><code>{escape(command(path, example['value'], document))}</code></pre>"
        for content in body.values()
        for example in content.get("examples", {}).values()
    ]
    answers = "".join(
        f"<tr><th scope='row'>{status}</th><td>{escape(answer['description'])}</td><td>{kinds_of(answer)}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    takes = "".join(f"<p>Takes {reference(content['schema'])} as {kind}.</p>" for kind, content in body.items())
    return (
        f'<section aria-labelledby="{anchor}"><h3 id="{anchor}"><span class="method {method}">{method.upper()}</span> '
        f"<code>{escape(path)}</code> {escape(operation['summary'])}</h3>{paragraphs(operation['description'])}{takes}"
        f'{"".join(examples)}<div class="wide"><table class="answers">{head("Status", "When", "Body")}<tbody>{answers}</tbody>'
        "</table></div></section>"
    )


def head(*names: str) -> str:
    return "<thead><tr>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead>"


def command(path: str, body: Any, document: dict[str, Any]) -> str:
    token, server = " -H 'Authorization: Bearer TOKEN'" if document.get("security") else "", document["servers"][0]["url"]
    quoted = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
    return f"curl -H 'Content-Type: application/json'{token} \\\n  -d '{quoted}' \\\n  {server}{path}"


def kinds_of(answer: dict[str, Any]) -> str:
    return ", ".join(
        reference(content["schema"]) if "$ref" in content.get("schema", {}) else escape(kind)
        for kind, content in answer.get("content", {}).items()
    )


def reference(schema: dict[str, Any]) -> str:
    """The type of a value in words, with links to objects."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return " or ".join(map(reference, schema[word]))
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(escape(one) for one in kind)
    if kind == "array":
        return f"list of {reference(schema['items'])}" if "items" in schema else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {reference(schema['additionalProperties'])}"
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    return escape(kind)


def schema_section(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = "".join(
        f"<tr><th scope='row'><code>{escape(key)}</code>{' <small>always</small>' if key in needed else ''}</th>"
        f"<td>{reference(value)}</td><td>{escape(value.get('description', ''))}</td></tr>"
        for key, value in schema.get("properties", {}).items()
    )
    table = f'<div class="wide"><table>{head("Field", "Type", "Meaning")}<tbody>{rows}</tbody></table></div>' if rows else ""
    about = f'<h3 id="schema-{name}">{name}</h3><p>{escape(schema.get("description", ""))}</p>'
    return f'<section aria-labelledby="schema-{name}">{about}{table}</section>'
