"""Tasks of a node: kept, heard and ended."""

from __future__ import annotations

import asyncio

from millbeck.server.loop.tasks import TaskSupervisor


def test_a_task_is_kept_until_it_ends_and_what_it_raises_is_heard() -> None:
    async def main() -> None:
        reported: list[Exception] = []
        failed: list[BaseException] = []
        tasks = TaskSupervisor(asyncio.get_running_loop(), report=reported.append, fail=failed.append)

        class Ending(BaseException):
            pass

        async def work(error: BaseException | None) -> None:
            await asyncio.sleep(0)
            if error is not None:
                raise error

        for error in (None, ValueError("wrong"), Ending()):
            tasks.spawn(work(error))
        assert len(tasks.running) == 3
        for _ in range(4):
            await asyncio.sleep(0)
        assert tasks.running == {}
        assert [str(each) for each in reported] == ["wrong"]
        assert [type(each) for each in failed] == [Ending]

    asyncio.run(main())


def test_cancelling_waits_for_the_last_words() -> None:
    async def main() -> None:
        said: list[str] = []
        tasks = TaskSupervisor(asyncio.get_running_loop(), report=lambda _: None, fail=lambda _: None)

        async def work() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(0)
                said.append("the end")

        tasks.spawn(work())
        await asyncio.sleep(0)
        await tasks.cancel()
        assert said == ["the end"]
        assert tasks.running == {}

    asyncio.run(main())
