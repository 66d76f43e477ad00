"""What the server counts: the columns of its `Board`, by name."""

import time

from rankplane.serving.metrics import ROWS, SECONDS, Board, Histogram, Labels
from rankplane.serving.models import ServedModel

PATHS = ("/predict", "/models", "/metrics", "/health", "/ready", "/", "/docs", "/openapi.json", "other")
STATUSES = (200, 204, 400, 401, 404, 405, 408, 413, 415, 431, 500, 503)


class Counts:
    """Declared before workers are forked, and again for each model that is replaced."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.started = time.time()
        # A row for the supervisor, one for each worker, and one for its successor; a few for those that are still ending.
        self.board = Board(2 * n_workers + 8)
        self.requests = {
            (path, status): self.board.column("rankplane_requests_total", path=path, status=str(status))
            for path in PATHS
            for status in STATUSES
            if path == "/predict" or status < 413
        }
        self.seconds = Histogram(self.board, "rankplane_request_seconds", SECONDS)
        self.batch_rows = Histogram(self.board, "rankplane_batch_rows", ROWS)
        self.lost = self.board.column("rankplane_workers_lost_total")
        self.rows: dict[str, int | None] = {}
        self.ranks: dict[tuple[str, str], int | None] = {}
        self.replacements: dict[tuple[str, bool], int | None] = {}

    def declare(self, served: ServedModel) -> None:
        name = served.name
        self.rows[name] = self.board.column("rankplane_rows_total", model=name)
        for rank in served.rank_names:
            self.ranks[name, rank] = self.board.column("rankplane_predictions_total", model=name, rank=rank)
        for is_used, label in ((True, "true"), (False, "false")):
            self.replacements[name, is_used] = self.board.column("rankplane_replacements_total", model=name, used=label)

    def request(self, path: str, status: int, seconds: float) -> None:
        known = path if path in PATHS else "other"
        self.board.add(self.requests.get((known, status)))
        if known == "/predict" and status == 200:
            self.seconds.observe(seconds)

    def predicted(self, served: ServedModel, ranks: list[object]) -> None:
        self.board.add(self.rows[served.name], len(ranks))
        for rank in ranks:
            self.board.add(self.ranks[served.name, str(rank)])

    def exposition(self, models: dict[str, ServedModel]) -> str:
        gauges: list[tuple[str, Labels, float]] = [
            ("rankplane_start_timestamp_seconds", {}, self.started),
            ("rankplane_workers", {}, self.n_workers),
        ]
        for name, served in models.items():
            gauges.append(("rankplane_model_info", {"model": name, "version": served.version}, 1))
            gauges.append(("rankplane_model_loaded_timestamp_seconds", {"model": name}, served.loaded))
        return self.board.exposition(gauges)
