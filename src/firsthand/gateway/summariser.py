"""Asks the upstream of a request for a summary, with that request's own credentials; used from the thread of a compaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from ..codec import decode, encode
from ..errors import ProviderError

__all__ = ["UpstreamSummariser"]


class UpstreamSummariser:
    """A summariser for one compaction. Holds a client's key for as long as that takes and shows it nowhere."""

    def __init__(self, url: str, headers: list[tuple[bytes, bytes]], timeout: float) -> None:
        self._url = url
        self._headers = [
            (name, value) for name, value in headers if name.lower() not in (b"accept", b"accept-encoding")
        ]
        self._timeout = timeout

    def __repr__(self) -> str:
        return "UpstreamSummariser()"

    def __call__(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response to one request.

        Raises:
            ProviderError: it could not be reached, or answered with an error or with no JSON object.
        """
        try:
            answer = httpx2.post(self._url, content=encode(body), headers=self._headers, timeout=self._timeout)
        except httpx2.HTTPError as error:
            raise ProviderError(None, "", f"the upstream could not be reached: {type(error).__name__}") from None
        if answer.status_code >= 400:
            raise ProviderError(answer.status_code, answer.text)
        try:
            value = decode(answer.content)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ProviderError(answer.status_code, "", "the upstream's summary is no JSON object")
        return value
