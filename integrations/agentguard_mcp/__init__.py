"""The guard for MCP: `agentguard_mcp.server` judges inside a FastMCP server, `agentguard_mcp.client` before the wire.

server.add_middleware(GuardMiddleware(run))        # from agentguard_mcp.server
session = GuardedSession(session)                  # from agentguard_mcp.client
"""
