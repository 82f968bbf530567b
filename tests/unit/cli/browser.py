"""A headless Chromium, driven over its pipe: no packages are needed, and no port is opened.

`find_browser` looks for a browser that is installed; tests that want one skip where there is none.
"""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
         "headless_shell", "microsoft-edge")
SECONDS = 60


def find_browser() -> str | None:
    """The browser that GRADSMITH_BROWSER names, one on the path, or one that Playwright has installed."""
    named = os.environ.get("GRADSMITH_BROWSER")
    if named:
        return named
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        caches = [Path.home() / ".cache/ms-playwright", Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "/nonexistent"))]
        shells = [p for cache in caches for name in ("headless_shell", "chrome-headless-shell", "chrome")
                  for p in sorted(cache.glob(f"chromium*/*/{name}")) if os.access(p, os.X_OK)]
        found = str(shells[-1]) if shells else None
    return found


class Browser:
    """Use as a context manager.  `page(path)` opens a file in a new page."""

    def __init__(self, path: str, folder: Path) -> None:
        from_us, self._out = os.pipe()
        self._in, from_it = os.pipe()
        command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
                   f"--user-data-dir={folder}", "about:blank"]

        def pipes() -> None:        # Chromium reads commands from 3 and writes to 4
            apart = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (from_us, from_it)]
            for number, end in enumerate(apart, 3):
                os.dup2(end, number)

        self._process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(from_it)
        self._numbers = itertools.count(1)
        self._rest = b""
        self.events: list[dict] = []

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *fault: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, session: str | None = None, **params: object) -> dict:
        """One command of the DevTools protocol and its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event: str, session: str) -> dict:
        """The next event of that name."""
        while True:
            for at, known in enumerate(self.events):
                if known.get("method") == event and known.get("sessionId") == session:
                    return self.events.pop(at)
            self.events.append(self._read())

    def _read(self) -> dict:
        until = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._in, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def page(self, path: Path, *, dark: bool = False, scripts: bool = True, width: int = 1200, height: int = 800) -> "Page":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", session)
        return page


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **params: object) -> dict:
        return self.browser.call(method, self.session, **params)

    def evaluate(self, script: str) -> object:
        """The JSON value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click on the middle of the first element of the selector; without scripts, too."""
        node = self.call("DOM.querySelector", nodeId=self.call("DOM.getDocument")["root"]["nodeId"],
                         selector=selector)["nodeId"]
        self.call("DOM.scrollIntoViewIfNeeded", nodeId=node)
        corners = self.call("DOM.getContentQuads", nodeId=node)["quads"][0]
        x, y = sum(corners[::2]) / 4, sum(corners[1::2]) / 4
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key: a letter, "Tab" or "Enter"."""
        code = {"Tab": 9, "Enter": 13}.get(key, ord(key[0].upper()))
        text = {"Tab": "", "Enter": "\r"}.get(key, key)
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, text=text,
                  windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def has_attribute(self, selector: str, name: str) -> bool:
        """Asked of the document itself, for pages without scripts."""
        node = self.call("DOM.querySelector", nodeId=self.call("DOM.getDocument")["root"]["nodeId"],
                         selector=selector)["nodeId"]
        return name in self.call("DOM.getAttributes", nodeId=node)["attributes"][::2]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def problems(self) -> list[str]:
        """What the console says, and every request other than for the page itself."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event.get("params", {})
            if event["method"] == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif event["method"] == "Network.requestWillBeSent" and params["type"] != "Document":
                found.append(params["request"]["url"])
        return found
