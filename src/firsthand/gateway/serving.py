"""The HTTP server under the gateway: in the foreground for the command line, in a thread for programs and tests."""

from __future__ import annotations

import contextlib
import socket
import threading
from importlib import import_module
from types import TracebackType
from typing import Self

from ..errors import FirsthandError, MissingExtraError
from ..listening import listening

_EXTRA = ("genai_prices", "httpx2", "prometheus_client", "starlette", "structlog", "uvicorn")
try:
    for _name in _EXTRA:
        import_module(_name)
except ImportError as error:
    if error.name not in _EXTRA:
        raise
    raise MissingExtraError("the gateway", "gateway") from error

# Only now: the error above is what a person without the extra should see.
import uvicorn  # noqa: E402

from .app import build_app  # noqa: E402
from .config import GatewayConfig  # noqa: E402
from .telemetry import Telemetry  # noqa: E402

__all__ = ["Gateway", "serve"]

_PATIENCE = 15.0
_BACKLOG = 1_024


def _server(config: GatewayConfig, telemetry: Telemetry | None) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            build_app(config, telemetry),
            http="h11",
            ws="none",
            lifespan="on",
            # What breaks at a provider must break at the client, and is in our own log; uvicorn would call each one an error.
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            # Agents pause between two requests; a connection that closes just then costs them an error.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
            backlog=_BACKLOG,
        )
    )


def serve(config: GatewayConfig, telemetry: Telemetry | None = None) -> None:
    """Serve until interrupted.

    Raises:
        ConfigError: the address cannot be had.
        FirsthandError: it did not start; the journal says why.
    """
    opened = listening(config.host, config.port, backlog=_BACKLOG)
    server = _server(config, telemetry)
    told = telemetry or Telemetry()
    host, port = opened.getsockname()[:2]
    told.info(
        "gateway serves",
        url=f"http://{host}:{port}",
        mode=config.mode,
        upstreams={u.name: u.url for u in config.upstreams},
    )
    try:
        server.run(sockets=[opened])
    finally:
        opened.close()
    if not server.started:
        raise FirsthandError("the gateway did not start; the lines above say why")


class Gateway:
    """A gateway in a thread of its own.

    ::

        with Gateway(GatewayConfig([Upstream("default", "https://api.example.com/v1")], port=0)) as gateway:
            client = OpenAI(base_url=gateway.url + "/v1", api_key=...)
    """

    def __init__(self, config: GatewayConfig, telemetry: Telemetry | None = None) -> None:
        self.config = config
        self._telemetry = telemetry
        self._port = config.port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """Its address, without `/v1`."""
        return f"http://{self.config.host}:{self._port}"

    def start(self) -> Self:
        """Starts it; returns when it serves.

        Raises:
            ConfigError: the address cannot be had.
            FirsthandError: it did not start.
        """
        opened = listening(self.config.host, self.config.port, backlog=_BACKLOG)
        self._port = opened.getsockname()[1]
        self._server = _Told(_server(self.config, self._telemetry).config)
        self._thread = threading.Thread(target=self._run, args=(opened,), name="firsthand gateway", daemon=True)
        self._thread.start()
        if not self._server.serving.wait(_PATIENCE) or self._failure is not None or not self._server.started:
            self.stop()
            raise FirsthandError(f"the gateway at {self.url} did not start: {self._failure or 'see its log'}")
        return self

    def stop(self) -> None:
        """Stops it; what is being written to the journal is finished."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(_PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, opened: socket.socket) -> None:
        assert isinstance(self._server, _Told)
        try:
            self._server.run(sockets=[opened])
        except BaseException as error:  # the thread's end is the caller's business, not the interpreter's
            self._failure = error
        finally:
            with contextlib.suppress(OSError):
                opened.close()
            self._server.serving.set()


class _Told(uvicorn.Server):
    """A server that says when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()
