"""What alembic runs: the migrations, on the connection and inside the transaction that the opener holds."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
