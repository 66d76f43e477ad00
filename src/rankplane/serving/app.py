"""What a worker answers: predictions, what models there are, how it is doing, and pages for people.

Starlette's router finds the function for a path. Around it, `Watch` counts and logs every answer, and makes a sentence of whatever
is raised: no client ever sees a traceback, or a path of this machine. The layers of a whole Starlette application, which do the
same in general, take a tenth of the time of a small request.
"""

import asyncio
import hmac
import json
import os
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankplane.serving import pages
from rankplane.serving.answers import answer_to, dumped, explanations_of
from rankplane.serving.batching import Batcher, Judged
from rankplane.serving.counts import Counts
from rankplane.serving.errors import RequestError
from rankplane.serving.models import ServedModel
from rankplane.serving.openapi import document
from rankplane.serving.options import ServerOptions
from rankplane.serving.questions import Question, of_row, question_of
from rankplane.streams import print_error

JSON, HTML, TEXT = "application/json", "text/html; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"
# Answers are for those who asked, and not for caches on the way.
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
LATER = {"Retry-After": "1"}
DISCARDED = 8  # times the largest body, read and thrown away so that the client gets to read why it was refused
LARGE = 100_000  # bytes of a body that a thread reads
Handler = Callable[[Request], Awaitable[Response]]


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumped(value), status, {**HEADERS, **(headers or {})}, JSON)


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return answer({"error": sentence}, status, headers)


class Service:
    """The state of one worker, and a method for each path."""

    def __init__(self, models: Mapping[str, ServedModel], options: ServerOptions, counts: Counts) -> None:
        self.models = dict(models)
        self.options = options
        self.counts = counts
        self.is_ending = False
        self.token = None if options.token is None else options.token.encode()
        # One thread: a second one would only slow down the event loop.
        self.executor = ThreadPoolExecutor(1)
        self.batchers = {name: Batcher(served, self.executor, counts.batch_rows.observe) for name, served in self.models.items()}
        self.document = document(self.models, options)
        self.page, self.reference = pages.try_page(), pages.reference_page(self.document)

    def app(self) -> ASGIApp:
        routes = [
            Route("/predict", Endpoint(self.predict), methods=["POST"]),
            Route("/models", Endpoint(self.list_models), methods=["GET"]),
            Route("/health", Endpoint(self.health), methods=["GET"]),
            Route("/ready", Endpoint(self.ready), methods=["GET"]),
            Route("/metrics", Endpoint(self.metrics), methods=["GET"]),
            Route("/openapi.json", Endpoint(self.openapi), methods=["GET"]),
            Route("/docs", Endpoint(self.docs), methods=["GET"]),
            Route("/", Endpoint(self.try_it), methods=["GET"]),
        ]
        app = Watch(Router(routes, redirect_slashes=False), self)
        if not self.options.allow_origin:
            return app
        methods, headers = ["GET", "POST"], ["Authorization", "Content-Type"]
        return CORSMiddleware(app, allow_origins=self.options.allow_origin, allow_methods=methods, allow_headers=headers)

    def check_token(self, request: Request) -> None:
        if self.token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            sentence = "A valid token is needed, in the header Authorization: Bearer TOKEN."
            raise RequestError(401, sentence, {"WWW-Authenticate": "Bearer"})

    async def predict(self, request: Request) -> Response:
        self.check_token(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:  # a browser sends nothing else to another site without asking
            raise RequestError(415, f"Content-Type must be {JSON}. Got {kind or 'none'}.")
        seconds, question = self.options.timeout, None
        try:
            async with asyncio.timeout(seconds) as limit:
                body = await self.body_of(request)
                question = await self.read(body)
                limit.reschedule(asyncio.get_running_loop().time() + seconds)
                judged = await self.batchers[question.served.name].predict(question)
                explanations = await self.explain(question, judged) if question.explains else None
        except TimeoutError:
            if question is None:
                sentence = f"The request did not arrive within {seconds:g} seconds."
                raise RequestError(408, sentence, {"Connection": "close"}) from None
            raise RequestError(503, f"The prediction took longer than {seconds:g} seconds.", LATER) from None
        except MemoryError:
            raise RequestError(503, "There is not enough memory for this request.", LATER) from None
        except ValueError as error:  # a value that does not fit its column
            raise RequestError(400, of_row(error, question.source if question else "")) from None
        self.counts.predicted(question.served, judged.ranks)
        request.scope["noted"] = {"model": question.served.name, "rows": question.n_rows}
        if self.options.log == "texts":
            request.scope["noted"] |= {"asked": json.loads(body), "ranks": judged.ranks}
        return answer(answer_to(question, judged, explanations))

    async def read(self, body: bytes) -> Question:
        """The question in a body. To read a large one takes longer than others should wait."""
        if len(body) <= LARGE:
            return question_of(body, self.models, self.options)
        return await asyncio.get_running_loop().run_in_executor(self.executor, question_of, body, self.models, self.options)

    async def explain(self, question: Question, judged: Judged) -> list[dict[str, Any]]:
        return await asyncio.get_running_loop().run_in_executor(self.executor, explanations_of, question, judged)

    async def body_of(self, request: Request) -> bytes:
        """The whole body, unless it is too large."""
        most = self.options.n_body_bytes
        sentence = f"The body must have at most {most:,} bytes."
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most and "expect" in request.headers:
            raise RequestError(413, sentence, {"Connection": "close"})  # the client waits with its body
        chunks, n_bytes, more = [], 0, True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "The body ended early.", {"Connection": "close"})
            chunk, more = message.get("body", b""), message.get("more_body", False)
            n_bytes += len(chunk)
            if n_bytes <= most:
                chunks.append(chunk)
            elif n_bytes > DISCARDED * most:
                break
            else:
                chunks.clear()
        if n_bytes > most:
            raise RequestError(413, sentence, {"Connection": "close"})
        return b"".join(chunks)

    async def list_models(self, request: Request) -> Response:
        self.check_token(request)
        options = self.options
        limits = {"rows": options.max_rows, "characters": options.max_characters, "bytes": options.n_body_bytes}
        return answer({"models": [served.description for served in self.models.values()], "limits": limits})

    async def health(self, request: Request) -> Response:
        return answer({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        if self.is_ending:
            raise RequestError(503, "The server is about to end.", LATER)
        return answer({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        self.check_token(request)
        return Response(self.counts.exposition(self.models), headers=HEADERS, media_type=TEXT)

    async def openapi(self, request: Request) -> Response:
        return answer(self.document)

    async def docs(self, request: Request) -> Response:
        return self.reference.response()

    async def try_it(self, request: Request) -> Response:
        return self.page.response()


class Endpoint:
    """A function of a request, as the router takes it."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.handler(Request(scope, receive))
        await response(scope, receive, send)


def refused(scope: Scope, error: HTTPException) -> Response:
    """What the router refuses: unknown paths, and methods that a path does not have."""
    path, method, headers = scope["path"][:60], scope["method"], error.headers or {}
    if error.status_code == 405:
        allowed = headers.get("Allow", "").replace("HEAD, ", "").replace(", HEAD", "")
        return refusal(405, f"{path} takes {allowed}. Got {method}.", headers)
    return refusal(404, f"There is nothing at {path}: /docs says what there is.")


class Watch:
    """Counts and logs requests, and answers those that fail."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["app"] = self  # the router then raises, rather than answer by itself
        start, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # Before the answer is sent: whoever has it finds it counted.
                self.service.counts.request(scope["path"], status, time.perf_counter() - start)
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            if status == 0:
                await self.answer_to(error, scope)(scope, receive, watched)
            else:
                report(error, self.service.options)
        if self.service.options.log != "nothing":
            log(scope, status, time.perf_counter() - start)

    def answer_to(self, error: Exception, scope: Scope) -> Response:
        if isinstance(error, RequestError):
            return refusal(error.status, error.sentence, error.headers)
        if isinstance(error, HTTPException):
            return refused(scope, error)
        report(error, self.service.options)
        return refusal(500, "Something failed on the server.")


def report(error: Exception, options: ServerOptions) -> None:
    """A bug, for whoever runs the server. Its message may quote a text, so it is left out unless texts may be logged."""
    frames = [
        f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    ]
    message = f": {error}" if options.log == "texts" else ""
    print_error(f"a request failed by {type(error).__name__}{message}, in {' > '.join(frames[-6:])}")


def log(scope: Scope, status: int, seconds: float) -> None:
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "seconds": round(seconds, 6),
        **scope.get("noted", {}),
    }
    with suppress(OSError):  # whoever read the log is gone, which is no reason to stop
        os.write(1, (json.dumps(line) + "\n").encode())  # all workers share the stream: a line is one write
