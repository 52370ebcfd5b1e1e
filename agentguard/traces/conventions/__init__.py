"""The tracing conventions that are read, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.conventions import (
    agentguard,
    claude_code,
    codex,
    crewai,
    gemini_cli,
    google_adk,
    haystack,
    langfuse,
    langsmith,
    mlflow,
    openinference,
    openllmetry,
    otel_genai,
    otel_mcp,
    pydantic_ai,
    vercel_ai,
)

if TYPE_CHECKING:
    from agentguard.traces.convention import Convention

BUILT_IN: dict[str, Convention] = {
    "agentguard": agentguard.CONVENTION,
    "otel_genai": otel_genai.CONVENTION,
    "pydantic_ai": pydantic_ai.CONVENTION,
    "otel_mcp": otel_mcp.CONVENTION,
    "google_adk": google_adk.CONVENTION,
    "openllmetry": openllmetry.CONVENTION,
    "crewai": crewai.CONVENTION,
    "langsmith": langsmith.CONVENTION,
    "vercel_ai": vercel_ai.CONVENTION,
    "haystack": haystack.CONVENTION,
    "langfuse": langfuse.CONVENTION,
    "mlflow": mlflow.CONVENTION,
    "openinference": openinference.CONVENTION,
    "claude_code": claude_code.CONVENTION,
    "codex": codex.CONVENTION,
    "gemini_cli": gemini_cli.CONVENTION,
}
