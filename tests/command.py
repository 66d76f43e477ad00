"""The command rankplane as tests run it: in this process, or as one of its own."""

import signal
import subprocess
import sys
import time

from rankplane.cli import main

COMMAND = [sys.executable, "-m", "rankplane"]


def complaint(capsys, arguments):
    """The one line that a failing command prints."""
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("rankplane: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err[len("rankplane: ") :].rstrip("\n")


def interrupted_fit(rows, model, seconds):
    """What a process says whose fit of a model on random rows is interrupted: whether the model is fitted."""
    script = f"""
import signal
import numpy as np
from rankplane import NPSVOR
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.standard_normal({rows})
model = {model}
print("go", flush=True)
try:
    model.fit(X, rng.integers(0, 5, len(X)))
except KeyboardInterrupt:
    print("fitted" if hasattr(model, "classes_") else "unfitted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(seconds)
    asked = time.monotonic()
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=30)[0]
    assert child.returncode == 0
    # A bound on a hang rather than a timing: the promise is a second, a loaded machine gets more.
    assert time.monotonic() - asked < 10
    return said


def start(command, **options):
    """A process whose signals are handled by now, which takes some twenty milliseconds."""
    child = subprocess.Popen(command, stderr=subprocess.PIPE, **options)
    while child.poll() is None and not is_caught(child.pid, signal.SIGHUP):
        time.sleep(0.0005)
    return child


def is_caught(pid, number):
    with open(f"/proc/{pid}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
