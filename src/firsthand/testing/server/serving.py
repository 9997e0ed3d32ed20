"""The HTTP server under the fake model server, set so that answers are byte for byte the script's, and that it stops at once."""

from __future__ import annotations

import uvicorn

from .app import build_app
from .settings import Settings

__all__ = ["HttpServer"]


class HttpServer(uvicorn.Server):
    """uvicorn, told to stop by an event instead of looking every tenth of a second: tests start and stop hundreds of these."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__(
            uvicorn.Config(
                build_app(settings),
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                # A broken stream is what the script asked for, not something to report.
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                # A client that pauses must not find its connection closed under the next request.
                timeout_keep_alive=600,
                timeout_graceful_shutdown=2,
            )
        )

    async def main_loop(self) -> None:
        """Serves until the server is told to stop."""
        if await self.on_tick(0) or self._settings.stopping is None:
            return
        await self._settings.stopping.wait()
