"""The dataset: fetched whole, proved by its hash, read row by row in one of three formats.

The control plane has judged every row before (`tensorant.domain.datasets`), and stores them decompressed; here
only what training relies on is read, and other fields are passed over.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, field_validator

from tensorant.contract import TrainerExit, Wire
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.storage import Rights, http_client, read_object, transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tensorant.contract import DatasetRef, Grants

DATASET_FILE = "dataset.jsonl"


class Function(Wire):
    """What an assistant calls. Arguments may come as an object or as its JSON; templates want the object."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_object(cls, arguments: object) -> object:
        return json.loads(arguments) if isinstance(arguments, str) else arguments


class ToolCall(Wire):
    """One call of an assistant's turn."""

    function: Function
    id: str | None = None

    def turn(self) -> dict[str, Any]:
        call: dict[str, Any] = {"type": "function", "function": self.function.model_dump()}
        return call if self.id is None else {"id": self.id, **call}


class Message(Wire):
    """One turn of a chat. An assistant that calls tools may say nothing."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None

    def turn(self) -> dict[str, Any]:
        """As chat templates want it: without what is not there, and never without a content."""
        turn: dict[str, Any] = {"role": self.role, "content": self.content or ""}
        if self.tool_calls:
            turn["tool_calls"] = [call.turn() for call in self.tool_calls]
        if self.role == "tool":
            turn |= {
                key: value
                for key, value in (("tool_call_id", self.tool_call_id), ("name", self.name))
                if value is not None
            }
        return turn


class Conversation(Wire):
    """A row that is a chat. `number` counts lines from 1, as an editor shows it."""

    number: int
    messages: tuple[Message, ...] = Field(min_length=1)
    tools: tuple[dict[str, Any], ...] | None = None

    def turns(self) -> list[dict[str, Any]]:
        """The messages as chat templates want them."""
        return [message.turn() for message in self.messages]

    def functions(self) -> set[str]:
        """The names of all tools that are offered or called: a template that renders none of it loses them."""
        offered = {str(tool.get("function", {}).get("name", "")) for tool in self.tools or ()}
        called = {call.function.name for message in self.messages for call in message.tool_calls or ()}
        return offered | called


class Completion(Wire):
    """A row that is a prompt, and the completion to be learned."""

    number: int
    prompt: str = Field(min_length=1)
    completion: str = Field(min_length=1)


class Passage(Wire):
    """A row that is a text, all of it to be learned."""

    number: int
    text: str = Field(min_length=1)


Row = Conversation | Completion | Passage


def fetch_dataset(
    rights: Rights, expected: DatasetRef, directory: Path, *, pause: Callable[[float], None]
) -> Path:
    """Download to a file in `directory`. Raises `TrainerError`: dataset, if it is not the agreed one; storage."""
    path = directory / DATASET_FILE
    with http_client() as http:

        def once(grants: Grants) -> None:
            with path.open("wb") as file:
                for piece in read_object(http, grants.dataset_url, "the dataset"):
                    file.write(piece)

        transfer(rights, once, pause=pause)
    _check(path, expected)
    return path


def _check(path: Path, expected: DatasetRef) -> None:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    size = path.stat().st_size
    if (size, sha256) != (expected.bytes, expected.sha256):
        raise TrainerError(
            TrainerExit.DATASET,
            f"The dataset in storage is not the version this run was made for: {size} bytes with SHA-256"
            f" {sha256[:12]}… instead of {expected.bytes} with {expected.sha256[:12]}…."
            " Create a new dataset version and a new run.",
        )


def read_rows(path: Path, *, sample: int | None, seed: int) -> list[Row]:
    """All rows, or `sample` of them chosen by the seed, in their order; blank lines are skipped.

    Rows that are not chosen are not even parsed. Raises `TrainerError` (dataset) naming the first faulty line.
    """
    chosen = _chosen(path, sample, seed=seed)
    with path.open("rb") as file:
        rows = [
            _row(number, line)
            for number, line in enumerate(file, start=1)
            if (chosen is None or number in chosen) and line.strip()
        ]
    if not rows:
        raise TrainerError(TrainerExit.DATASET, "The dataset has no rows.")
    return rows


def _chosen(path: Path, sample: int | None, *, seed: int) -> Collection[int] | None:
    """The numbers of the lines to read; None for all of them."""
    if sample is None:
        return None
    with path.open("rb") as file:
        numbers = [number for number, line in enumerate(file, start=1) if line.strip()]
    if sample >= len(numbers):
        return None
    return set(random.Random(seed).sample(numbers, sample))  # noqa: S311 - reproducible, no secret


def _row(number: int, line: bytes) -> Row:
    try:
        row = {**_object(json.loads(line)), "number": number}
        if "text" in row:
            return Passage.model_validate(row)
        if "prompt" in row:
            return Completion.model_validate(row)
        return Conversation.model_validate(row)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise _fault(number, f"{where}: {fault['msg']}") from None
    except ValueError as error:  # of JSON, or of UTF-8
        raise _fault(number, str(error)) from None


def _object(row: object) -> dict[str, object]:
    if not isinstance(row, dict):
        raise ValueError("a row must be a JSON object")  # noqa: TRY004 - told as any bad value
    return row


def _fault(number: int, what: str) -> TrainerError:
    return TrainerError(TrainerExit.DATASET, f"Line {number} of the dataset cannot be used: {what}.")
