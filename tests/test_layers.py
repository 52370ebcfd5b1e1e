"""Guards around the same call in layers that share no context."""

from __future__ import annotations

import asyncio

from agentguard import Guard, ToolCall
from agentguard.layers import elsewhere, is_inside


def test_a_call_whose_code_runs_in_a_task_of_its_own_is_inside_the_layer_that_judged_it():
    call = ToolCall("search", {"query": "a"})

    async def main() -> tuple[bool, bool, bool]:
        with Guard(quiet=True).run(model="none", harness="test") as run:
            attempt = run.begin(call)
            running = [(run.run_id, attempt.place.key)]

            async def code() -> bool:
                return is_inside(run.run_id, attempt.place.key)

            with elsewhere(running):
                task = asyncio.create_task(code())
            inside, beside = await task, await code()
            running.clear()
            with elsewhere(running):
                return inside, beside, await code()

    assert asyncio.run(main()) == (True, False, False)
