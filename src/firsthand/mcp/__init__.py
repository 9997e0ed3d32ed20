"""One's own history for an agent: an MCP server with `history_search` and `history_get`.

`scope` says what may be seen (one session, or the sessions of one tenant) and reads the journal within it; `server` offers it as tools;
`http` serves it to several tenants. Needs the extra `mcp`.
"""
