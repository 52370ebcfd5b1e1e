"""OpenTelemetry MCP: client and server spans of one `tools/call` request."""

from __future__ import annotations

from agentguard.traces.convention import Convention, Role

CONVENTION = Convention(
    name="otel_mcp",
    markers=frozenset({"mcp.method.name"}),
    roles={"mcp.method.name": {"tools/call": Role.TOOL}},
    tool_name=("gen_ai.tool.name", "mcp.tool.name"),
    arguments=("gen_ai.tool.call.arguments", "mcp.request.argument"),
    result=("gen_ai.tool.call.result",),
    failed={"error.type": frozenset()},
    conversation=("mcp.session.id",),
)
