"""Which tokens are learned: the assistant's words and the end of its turn, and nothing else.

Of a prompt with its completion, the completion and the end of text; of a text, all of it. Those are not rendered:
the model sees them as they are. Chat templates do not say which part is whose. Three ways are tried, the most exact first: the template's own
generation markers; the difference between the rendered text before and after an answer, mapped to tokens by
their offsets; the same, but one sample per answer, for templates that render an answer otherwise once it is
no longer the last. Tokens are masked by position, never by id: the padding token may be the end of turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from tensorant.contract import TrainerExit
from tensorant_trainer.dataset import Completion, Conversation, Passage
from tensorant_trainer.errors import TrainerError

if TYPE_CHECKING:
    from tensorant_trainer.dataset import Row

IGNORED = -100
"""The label that PyTorch's cross entropy leaves out."""
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")

Turn = dict[str, Any]
"""A message as templates want it."""
Span = tuple[int, int]
"""Characters of a rendered text, from the first to before the last."""


@dataclass(frozen=True)
class Sample:
    """A sequence to train on. `labels` has the token where it is learned, `IGNORED` elsewhere."""

    input_ids: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def learned(self) -> int:
        """How many tokens are learned. The first never is: nothing comes before it to predict it from."""
        return sum(label != IGNORED for label in self.labels[1:])


@dataclass(frozen=True)
class Samples:
    """What is trained on, and how much was left out."""

    samples: tuple[Sample, ...]
    dropped: int
    """Rows without an answer, and samples of which truncation left nothing to learn."""

    @property
    def tokens(self) -> int:
        return sum(len(sample.input_ids) for sample in self.samples)

    @property
    def learned(self) -> int:
        return sum(sample.learned for sample in self.samples)


def make_samples(rows: Sequence[Row], tokenizer: Any, *, max_tokens: int) -> Samples:
    """Tokenize and mask every row; at least one token is learned in each sample that is kept.

    Raises `TrainerError`: template, if the model's chat template cannot say what the assistant wrote;
    dataset, if nothing is left to learn.
    """
    if any(isinstance(row, Conversation) for row in rows) and not tokenizer.chat_template:
        raise TrainerError(
            TrainerExit.TEMPLATE, "The base model has no chat template. Choose its chat or instruct version."
        )
    answering = [row for row in rows if not isinstance(row, Conversation) or _answers(row.turns())]
    made = [_truncated(sample, max_tokens) for row in answering for sample in mask(row, tokenizer)]
    kept = tuple(sample for sample in made if sample.learned)
    if not kept:
        raise TrainerError(
            TrainerExit.DATASET,
            f"No row has an answer that begins within its first {max_tokens} tokens. Raise `max_tokens`.",
        )
    return Samples(kept, dropped=len(rows) - len(answering) + len(made) - len(kept))


def mask(row: Row, tokenizer: Any) -> list[Sample]:
    """The samples of a row with an answer: one, or one per answer. Raises `TrainerError` (template)."""
    match row:
        case Completion():
            return [_ended(row.prompt + row.completion, len(row.prompt), tokenizer)]
        case Passage():
            return [_ended(row.text, 0, tokenizer)]
        case Conversation():
            return _mask_chat(row, tokenizer)


def _ended(text: str, learned_from: int, tokenizer: Any) -> Sample:
    """A text as the base model met its own: with the special tokens around it, and the end of text learned."""
    encoded = tokenizer(text, return_offsets_mapping=True)
    learned = [start < end and start >= learned_from for start, end in encoded["offset_mapping"]]
    input_ids, end = list(encoded["input_ids"]), tokenizer.eos_token_id
    if end is None:
        return _sample(input_ids, learned)
    if input_ids and input_ids[-1] == end and not learned[-1]:  # the tokenizer has put it there itself
        return _sample(input_ids, [*learned[:-1], True])
    return _sample([*input_ids, end], [*learned, True])


def _mask_chat(conversation: Conversation, tokenizer: Any) -> list[Sample]:
    template = Template(tokenizer, conversation.tools)
    messages = conversation.turns()
    try:
        _require_tools(conversation, template)
        if _GENERATION.search(tokenizer.chat_template):
            return [template.masked_by_markers(messages)]
        whole = _by_difference(messages, template)
        samples = [whole] if whole else _by_turn(messages, template)
    except TemplateError as error:
        raise _template_fault(conversation, f"refuses it: {error}") from error
    if not samples:
        raise _template_fault(conversation, "does not show where an answer begins")
    return samples


@dataclass(frozen=True)
class Template:
    """A model's chat template, told of one chat's tools. Both methods raise `TemplateError`."""

    tokenizer: Any
    tools: Sequence[dict[str, Any]] | None

    def rendered(self, messages: list[Turn], *, add_generation_prompt: bool = False) -> str:
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                tools=self._tools(),
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
            )
        )

    def masked_by_markers(self, messages: list[Turn]) -> Sample:
        encoded = self.tokenizer.apply_chat_template(
            messages,
            tools=self._tools(),
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        return _sample(encoded["input_ids"], [bool(mine) for mine in encoded["assistant_masks"]])

    def _tools(self) -> list[dict[str, Any]] | None:
        return list(self.tools) if self.tools else None


def _require_tools(conversation: Conversation, template: Template) -> None:
    """Many templates pass over tools and calls without a word; the model would learn empty answers."""
    if not (names := conversation.functions()):
        return
    text = template.rendered(conversation.turns())
    if missing := sorted(name for name in names if name not in text):
        raise _template_fault(conversation, f"has no place for tools: {missing[0]} is not in what it writes")


def _by_difference(messages: list[Turn], template: Template) -> Sample | None:
    """One sample that learns every answer; None unless the whole text begins as each earlier text does."""
    text = template.rendered(messages)
    spans = [_answer(messages[: index + 1], template) for index in _answers(messages)]
    if any(span is None or not text.startswith(before) for before, span in spans):
        return None
    return _tokenized(text, [span for _, span in spans if span], template.tokenizer)


def _by_turn(messages: list[Turn], template: Template) -> list[Sample]:
    """One sample per answer, each ending with it; empty unless every answer can be told from its prompt."""
    turns = [_answer(messages[: index + 1], template) for index in _answers(messages)]
    return (
        []
        if any(span is None for _, span in turns)
        else [_tokenized(text, [span], template.tokenizer) for text, span in turns if span]
    )


def _answers(messages: list[Turn]) -> list[int]:
    """Where the assistant answers somebody: a chat's very first message is no answer."""
    return [index for index, message in enumerate(messages) if index and message["role"] == "assistant"]


def _answer(messages: list[Turn], template: Template) -> tuple[str, Span | None]:
    """The text up to and with its last message, and the span of that message after the prompt for it."""
    text = template.rendered(messages)
    prompt = template.rendered(messages[:-1], add_generation_prompt=True)
    known = text.startswith(prompt) and len(prompt) < len(text)
    return text, (len(prompt), len(text)) if known else None


def _tokenized(text: str, spans: Sequence[Span], tokenizer: Any) -> Sample:
    """Tokens that begin within a span are learned. One that begins before it belongs to the prompt too."""
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    learned = [
        start < end and any(first <= start < last for first, last in spans)
        for start, end in encoded["offset_mapping"]
    ]
    return _sample(encoded["input_ids"], learned)


def _sample(input_ids: Sequence[int], learned: Sequence[bool]) -> Sample:
    labels = (token if is_learned else IGNORED for token, is_learned in zip(input_ids, learned, strict=True))
    return Sample(tuple(input_ids), tuple(labels))


def _truncated(sample: Sample, max_tokens: int) -> Sample:
    return Sample(sample.input_ids[:max_tokens], sample.labels[:max_tokens])


def _template_fault(conversation: Conversation, what: str) -> TrainerError:
    return TrainerError(
        TrainerExit.TEMPLATE,
        f"The base model's chat template cannot be used for line {conversation.number} of the dataset:"
        f" it {what}. Choose another base model, or reshape the row.",
    )
