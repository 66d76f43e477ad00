"""What ``rankplane serve`` may be told, and its checks. Imports nothing heavy, since ``--help`` needs the defaults."""

import os
import re
from dataclasses import dataclass

from rankplane.options import Wording, named

TOKEN_VARIABLE = "RANKPLANE_TOKEN"
MIN_TOKEN = 16  # characters; shorter ones can be guessed
LOGS = ("nothing", "requests", "texts")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ORIGIN = re.compile(r"https?://[^/\s]+")
MAX_WORKERS = 256


class ServingError(ValueError):
    """Why there is no server, in one sentence."""

    def __init__(self, sentence: str) -> None:
        worded = Wording(sentence)
        super().__init__(str(worded))
        self.with_options = worded.with_options


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server, named as on the command line."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    allow_origin: tuple[str, ...] = ()
    max_body: float = 4.0  # megabytes
    max_rows: int = 1000
    max_characters: int = 100_000
    timeout: float = 10.0
    log: str = "nothing"
    token: str | None = None

    @property
    def n_body_bytes(self) -> int:
        return int(self.max_body * 1e6)

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach the server and need no token."""
        return self.token is None and self.host not in LOOPBACK

    def check(self) -> None:
        check_range("port", self.port, 0, 65535, "a port from 0 to 65535; 0 takes a free one")
        check_range("workers", self.workers, 1, MAX_WORKERS, f"a number of processes from 1 to {MAX_WORKERS}")
        check_range("max_body", self.max_body, 0.001, 1000, "a number of megabytes from 0.001 to 1000")
        check_range("max_rows", self.max_rows, 1, 10**6, "a number from 1 to 1,000,000")
        check_range("max_characters", self.max_characters, 1, 10**9, "a number from 1 to 1,000,000,000")
        check_range("timeout", self.timeout, 0.1, 3600, "a number of seconds from 0.1 to 3600")
        if self.log not in LOGS:
            raise ServingError(f"{named('log')} must be one of {', '.join(LOGS)}. Got {self.log}.")
        for origin in self.allow_origin:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ServingError(f"{named('allow_origin')} must be an origin such as https://example.org, or *. Got {origin}.")


def check_range(name: str, value: float, least: float, most: float, rule: str) -> None:
    if not least <= value <= most:
        raise ServingError(f"{named(name)} must be {rule}. Got {value:g}.")


def read_token(path: str | None) -> str | None:
    """The token in a file, or else in the environment: what is on the command line, everyone on the machine can see."""
    if path is None:
        token, source = os.environ.get(TOKEN_VARIABLE), f"The environment variable {TOKEN_VARIABLE}"
    else:
        with open(path, encoding="ascii", errors="replace") as file:
            token, source = file.read(10_000).strip(), path
    if token is None:
        return None
    if len(token) < MIN_TOKEN or not re.fullmatch(r"[!-~]+", token):
        raise ServingError(f"{source} must hold a token of at least {MIN_TOKEN} letters, digits or signs, without spaces.")
    return token
