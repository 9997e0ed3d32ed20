"""A model behind an HTTP endpoint, for summaries; OpenAI-compatible or Anthropic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import MissingExtraError, ProviderError

__all__ = ["HttpModel"]

_PATHS = {"openai-chat": "/chat/completions", "openai-responses": "/responses", "anthropic": "/messages"}


class HttpModel:
    """Posts request bodies to an endpoint; usable as a session's summariser, sync or async.

    Args:
        url: base URL, the part before `/chat/completions`, `/responses` or `/messages`.
        wire: which of the three APIs it speaks.
        model: the model's name; bodies that have none get it.
        key: API key, sent as the API wants it; shown nowhere.
        timeout: seconds for the whole answer.

    Raises:
        MissingExtraError: on construction, when `httpx2` is not installed.
    """

    def __init__(
        self, url: str, *, wire: str = "openai-chat", model: str = "", key: str | None = None, timeout: float = 120.0
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("calling a model over HTTP", "http") from None
        self._httpx = httpx2
        self.url = url.rstrip("/") + _PATHS[wire]
        self.model = model
        self.timeout = timeout
        self._headers = {} if key is None else _authorisation(wire, key)

    def __repr__(self) -> str:
        return f"HttpModel({self.url!r}, model={self.model!r})"

    def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The response to one request.

        Raises:
            ProviderError: it could not be reached, or answered with an error or with no JSON object.
        """
        try:
            answer = self._httpx.post(self.url, json=self._completed(body), headers=self._headers, timeout=self.timeout)
        except self._httpx.HTTPError as error:
            raise ProviderError(None, "", f"{self.url} could not be reached: {type(error).__name__}") from error
        return self._parsed(answer.status_code, answer.text)

    async def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The same, without blocking.

        Raises:
            ProviderError: as above.
        """
        try:
            async with self._httpx.AsyncClient(timeout=self.timeout) as client:
                answer = await client.post(self.url, json=self._completed(body), headers=self._headers)
        except self._httpx.HTTPError as error:
            raise ProviderError(None, "", f"{self.url} could not be reached: {type(error).__name__}") from error
        return self._parsed(answer.status_code, answer.text)

    def _completed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(body) if "model" in body else {"model": self.model, **body}

    def _parsed(self, status: int, text: str) -> dict[str, Any]:
        if status >= 400:
            raise ProviderError(status, text, f"{self.url} answered {status}")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ProviderError(status, text, f"{self.url} answered {status} with something that is no JSON object")
        return value


def _authorisation(wire: str, key: str) -> dict[str, str]:
    if wire == "anthropic":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return {"authorization": f"Bearer {key}"}
