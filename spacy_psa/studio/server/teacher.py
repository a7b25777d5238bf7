"""Runs Teach next to the server, and puts its model in place."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from spacy.language import Language

from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.studio.active_learning.teach_process import Lesson

Put = Callable[[Language], Awaitable[Any]]
"""Puts a pipeline in the place of the one that is served."""
PROGRAM = "spacy_psa.studio.active_learning.teach_process"


class Teacher:
    """Trains in a process of its own, one training at a time.

    After a training whose model is used, the next one continues from that model.

    Attributes:
        status: plain data: `state` is idle, running, taken, kept, stopped or failed; `message` is
            the same in words.
    """

    def __init__(self, lesson: Lesson):
        self.lesson = lesson
        self.status: dict[str, Any] = {"state": "idle", "message": ""}
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    def start(self, put: Put) -> None:
        """Begin a training; only one runs at a time."""
        if self._task is not None and not self._task.done():
            raise InputError("Teach is running: wait for its end, or stop it")
        self.status = {"state": "running", "message": "Teach begins …"}
        self._task = asyncio.get_running_loop().create_task(self._run(put))

    def stop(self) -> None:
        """End a training that runs; nothing changes."""
        if self._process is not None and self._process.returncode is None:
            self.status = {"state": "stopped", "message": "Teach was stopped; nothing changed."}
            self.kill()

    def kill(self) -> None:
        """End the process of a training, if there is one."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _run(self, put: Put) -> None:
        try:
            last = await self._lines()
            if self.status["state"] == "stopped":
                return
            if "error" in last:
                raise InputError(last["error"])
            if "taken" not in last:
                raise InputError("its process ended without an answer; is there memory enough?")
            if last["taken"]:
                model = str(self.lesson.output)
                nlp = await asyncio.to_thread(load_pipeline, model, self.lesson.gpu_id)
                await put(nlp)
                self.lesson = self.lesson.model_copy(update={"model": model})
            self.status = {"state": "taken" if last["taken"] else "kept", "message": _result(last)}
        except Exception as error:  # whatever it is, the server keeps its model
            why = " ".join(str(getattr(error, "detail", error)).split()) or type(error).__name__
            message = f"Teach failed, and nothing changed: {why}"
            self.status = {"state": "failed", "message": message}

    async def _lines(self) -> dict[str, Any]:
        """Run the process, follow its progress, and return the last line that it wrote."""
        self._process = await asyncio.create_subprocess_exec(
            *child_command(PROGRAM),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        last: dict[str, Any] = {}
        try:
            with suppress(ConnectionError):
                self._process.stdin.write(self.lesson.model_dump_json().encode() + b"\n")
                await self._process.stdin.drain()
            async for line in self._process.stdout:
                last = json.loads(line)
                if "epoch" in last and self.status["state"] == "running":
                    message = (
                        f"Teach: pass {last['epoch']} of at most {last['of']}, score "
                        f"{last['score']:.1%}, before {last['before']:.1%}"
                    )
                    self.status = {"state": "running", "message": message}
            await self._process.wait()
        finally:
            self.kill()
        return last


def _result(last: dict[str, Any]) -> str:
    scores = f"score {last['score']:.1%} instead of {last['before']:.1%} on {last['dev']} texts"
    if last["taken"]:
        return f"Taught from {last['texts']} texts. The new model is in use: {scores}."
    return f"Taught from {last['texts']} texts. The model stays as it is: {scores} would be worse."
