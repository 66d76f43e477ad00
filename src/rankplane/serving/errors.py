"""Why a request is refused: a status and one sentence, which is all that a client learns."""


class RequestError(Exception):
    """Answered as ``{"error": sentence}``."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}
