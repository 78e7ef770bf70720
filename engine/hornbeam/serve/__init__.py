"""Indexes over HTTP and MCP: one resident model, many callers. `app.create_app` puts it together."""
