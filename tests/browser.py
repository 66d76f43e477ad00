"""A real browser, driven over the two pipes of its DevTools protocol: no driver, no package, no port."""

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
# Every text whose contrast with what lies behind it is below 4.5, which WCAG asks for at level AA.
FAINT_TEXTS = """(() => {
  const numbers = colour => { const n = colour.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n.slice(0, 3), 1] : n; };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = colour => {
    const [r, g, b] = colour.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = element => {
    const below = element.parentElement ? behind(element.parentElement) : [255, 255, 255];
    return over(numbers(getComputedStyle(element).backgroundColor), below);
  };
  const faint = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, shown = element.getClientRects();
    if (!texts.currentNode.data.trim() || !shown.length || element.closest('.unseen, caption, title')) continue;
    const style = getComputedStyle(element), below = behind(element);
    const ink = over(numbers(element.closest('svg') ? style.fill : style.color), below);
    const [low, high] = [light(ink), light(below)].sort((a, b) => a - b), ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${element.tagName} ${texts.currentNode.data.slice(0, 40)}`);
  }
  return [...new Set(faint)];
})()"""


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

    def open(self, address, width, scheme, medium="screen"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": scheme}])
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
