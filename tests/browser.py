"""A real browser, driven over the two pipes of its DevTools protocol: no driver, no package, no port."""

import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
CONTRAST = """
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
  const ratioOf = (colour, below) => {
    const [low, high] = [light(over(numbers(colour), below)), light(below)].sort((a, b) => a - b);
    return (high + .05) / (low + .05);
  };
"""
# Every text whose contrast with what lies behind it is below 4.5, which WCAG asks for at level AA.
FAINT_TEXTS = f"""(() => {{{CONTRAST}
  const faint = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {{
    const element = texts.currentNode.parentElement, shown = element.getClientRects();
    if (!texts.currentNode.data.trim() || !shown.length || element.closest('.unseen, caption, title')) continue;
    const style = getComputedStyle(element), ratio = ratioOf(element.closest('svg') ? style.fill : style.color, behind(element));
    if (ratio < 4.5) faint.push(`${{ratio.toFixed(2)}} ${{element.tagName}} ${{texts.currentNode.data.slice(0, 40)}}`);
  }}
  return [...new Set(faint)];
}})()"""
# Every control that can hardly be seen: neither its edge nor its inside has the contrast of 3 that WCAG asks for at level AA.
# Nor may the outline of what has the focus be fainter.
FAINT_CONTROLS = f"""(() => {{{CONTRAST}
  const faint = [], controls = document.querySelectorAll('input, select, textarea, button:not(.link), .button');
  for (const element of controls) {{
    if (!element.getClientRects().length || element.matches('.unseen, [type=checkbox]')) continue;
    const style = getComputedStyle(element), below = behind(element.parentElement), edge = ratioOf(style.borderTopColor, below);
    const ratio = Math.max(parseFloat(style.borderTopWidth) ? edge : 1, ratioOf(style.backgroundColor, below));
    if (ratio < 3) faint.push(`${{ratio.toFixed(2)}} ${{element.tagName}} ${{element.id}}`);
  }}
  const focused = document.activeElement, outline = getComputedStyle(focused).outlineColor;
  if (focused !== document.body && focused.matches(':focus-visible')) {{
    const ratio = ratioOf(outline, behind(focused.parentElement));
    if (ratio < 3 || !parseFloat(getComputedStyle(focused).outlineWidth)) faint.push(`${{ratio.toFixed(2)}} focus ${{focused.id}}`);
  }}
  return faint;
}})()"""


class Tab:
    """One page; ``events`` gathers what it reports of requests, messages and exceptions."""

    def __init__(self, commands, answers):
        self.commands, self.answers = commands, answers
        self.n_calls, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

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
        loader = self.call("Page.navigate", url=address)["loaderId"]
        # By the number of this load: that of another page may be over only now.
        while not any(event["loaderId"] == loader and event["name"] == "load" for event in self.seen("Page.lifecycleEvent")):
            self.events.append(self.receive())

    def seen(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]

    def ask(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def until(self, expression, seconds=20):
        """Wait for something to become true in the page."""
        end = time.monotonic() + seconds
        while not (found := self.ask(expression)):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)
        return found

    def middle_of(self, selector):
        """Where an element is, after scrolling to it."""
        x, y = self.ask(f"""(() => {{
          const element = document.querySelector({json.dumps(selector)});
          element.scrollIntoView({{ block: 'center' }});
          const box = element.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        return {"x": x, "y": y}

    def click(self, selector):
        place = self.middle_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def type(self, text):
        """Into what has the focus, as from a keyboard or a clipboard."""
        self.call("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        """A key that writes nothing but what it does by itself, such as Tab or Enter; Ctrl is the modifier 2, Shift is 8."""
        code = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "ArrowUp": 38}[key]
        about = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text and not modifiers else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def drop(self, selector, path):
        """Drag a file over an element and let it go there."""
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, data=data, **self.middle_of(selector))

    def choose(self, selector, path):
        """Choose a file, as in the dialogue that an input opens."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def download(self, selector, folder):
        """Click on a link to a file; returns the file."""
        session, self.session = self.session, None  # downloads are a matter of the browser, not of a page
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)
        self.session = session
        before = set(folder.iterdir())
        self.click(selector)
        while not (found := [path for path in folder.iterdir() if path not in before and path.suffix != ".crdownload"]):
            time.sleep(0.02)
        return found[0]

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
