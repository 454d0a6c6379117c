"""The dataset: fetched whole, proved by its hash, read as one chat per line."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from tensorant.contract import TrainerExit, Wire
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.storage import Rights, http_client, read_object, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorant.contract import DatasetRef, Grants

DATASET_FILE = "dataset.jsonl"


class Message(Wire):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Conversation(Wire):
    """One row. `number` counts from 1, as an editor shows it."""

    number: int
    messages: tuple[Message, ...] = Field(min_length=1)

    def turns(self) -> list[dict[str, str]]:
        """The messages as chat templates want them."""
        return [message.model_dump() for message in self.messages]


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


def read_conversations(path: Path) -> list[Conversation]:
    """All rows; blank lines are skipped. Raises `TrainerError` (dataset) naming the first faulty line."""
    with path.open("rb") as file:
        rows = [_conversation(number, line) for number, line in enumerate(file, start=1) if line.strip()]
    if not rows:
        raise TrainerError(TrainerExit.DATASET, "The dataset has no rows.")
    return rows


def _conversation(number: int, line: bytes) -> Conversation:
    try:
        row = json.loads(line)
        return Conversation.model_validate({**_object(row), "number": number})
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise _fault(number, f"{where}: {fault['msg']}") from None
    except ValueError as error:  # of JSON, or of UTF-8
        raise _fault(number, str(error)) from None


def _object(row: object) -> dict[str, object]:
    if not isinstance(row, dict):
        raise ValueError("a row must be a JSON object with `messages`")  # noqa: TRY004 - told as any bad value
    return row


def _fault(number: int, what: str) -> TrainerError:
    return TrainerError(TrainerExit.DATASET, f"Line {number} of the dataset cannot be used: {what}.")


def sampled(conversations: list[Conversation], count: int | None, *, seed: int) -> list[Conversation]:
    """`count` rows chosen by the seed, in their order; all of them if `count` is None or not smaller."""
    if count is None or count >= len(conversations):
        return conversations
    chosen = random.Random(seed).sample(range(len(conversations)), count)  # noqa: S311 - reproducible, no secret
    return [conversations[index] for index in sorted(chosen)]
