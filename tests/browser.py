"""A real browser, driven over the two pipes of its DevTools protocol: no driver, no package, no port."""

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]


class Tab:
    """One page; ``events`` gathers what it reports of requests, messages and exceptions."""

    def __init__(self, commands, answers):
        self.commands, self.answers = commands, answers
        self.n_calls, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.answers, 1 << 16)
            assert chunk, "the browser has gone"
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.n_calls += 1
        message = {"id": self.n_calls, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.n_calls:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, address, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=address)
        while not self.seen("Page.loadEventFired"):
            self.events.append(self.receive())

    def seen(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]

    def ask(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])


@contextmanager
def opened_tab(profile):
    """A tab of a browser that ends with the block."""
    browser_reads, commands = os.pipe()
    answers, browser_writes = os.pipe()

    def place_pipes():
        # The protocol wants them as 3 and 4; by way of numbers that are surely free.
        os.dup2(browser_reads, 103)
        os.dup2(browser_writes, 104)
        os.dup2(103, 3)
        os.dup2(104, 4)

    command = [BROWSER, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, preexec_fn=place_pipes, close_fds=False, stderr=subprocess.DEVNULL) as process:
        os.close(browser_reads)
        os.close(browser_writes)
        try:
            yield Tab(commands, answers)
        finally:
            process.terminate()
            os.close(commands)
            os.close(answers)
