"""File formats; one file each, one line each in `BUILT_IN`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentguard.traces.container import Format
from agentguard.traces.containers.atif import ATIF
from agentguard.traces.containers.chat import CHAT
from agentguard.traces.containers.claude_code import CLAUDE_CODE
from agentguard.traces.containers.inspect_ai import INSPECT
from agentguard.traces.containers.inspect_eval import INSPECT_EVAL
from agentguard.traces.containers.jaeger import JAEGER
from agentguard.traces.containers.langfuse import LANGFUSE
from agentguard.traces.containers.langsmith import LANGSMITH
from agentguard.traces.containers.mlflow import MLFLOW
from agentguard.traces.containers.openai_agents import OPENAI_AGENTS
from agentguard.traces.containers.otel_console import OTEL_CONSOLE
from agentguard.traces.containers.otlp_json import OTLP_JSON
from agentguard.traces.containers.otlp_proto import OTLP_PROTO
from agentguard.traces.containers.phoenix import PHOENIX
from agentguard.traces.containers.phoenix_parquet import PHOENIX_PARQUET
from agentguard.traces.containers.plain import PLAIN

BUILT_IN: Final[Mapping[str, Format]] = {
    "otlp-json": OTLP_JSON,
    "plain": PLAIN,
    "otel-console": OTEL_CONSOLE,
    "phoenix": PHOENIX,
    "mlflow": MLFLOW,
    "jaeger": JAEGER,
    "openai-agents": OPENAI_AGENTS,
    "langsmith": LANGSMITH,
    "langfuse": LANGFUSE,
    "atif": ATIF,
    "inspect": INSPECT,
    "claude-code": CLAUDE_CODE,
    "chat": CHAT,
    "otlp-proto": OTLP_PROTO,
    "inspect-eval": INSPECT_EVAL,
    "phoenix-parquet": PHOENIX_PARQUET,
}
"""Every format by its name, in the order in which a record is asked for."""
