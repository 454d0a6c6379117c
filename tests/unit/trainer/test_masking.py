"""Masks worked out by hand: in these tests every character is one token, and so is each ChatML marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from transformers import AutoTokenizer

from tensorant.contract import EXIT_CODES, TrainerExit
from tensorant_local.base_models import build_tiny
from tensorant_trainer.dataset import Completion, Conversation, Passage
from tensorant_trainer.errors import TrainerError
from tensorant_trainer.masking import IGNORED, Sample, make_samples, mask

MARKED = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Like templates of reasoning models: the last answer gets an empty thought, earlier ones lose it.
LAST_THINKS = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if loop.last and message['role'] == 'assistant' %}{{ '[]' }}{% endif %}"
    "{{ message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# The prompt for an answer is not the beginning of the answered text.
ANSWER_FIRST = (
    "{% for message in messages | reverse %}{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'A:' }}{% endif %}"
)
REFUSES_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's files; its tokenizer reads bytes, and its template is ChatML."""
    cache = tmp_path_factory.mktemp("models")
    base = build_tiny(cache)
    return next(cache.glob(f"*/snapshots/{base.revision}"))


@pytest.fixture
def tokenizer(snapshot: Path) -> Any:
    return AutoTokenizer.from_pretrained(snapshot)


if TYPE_CHECKING:
    from pathlib import Path


def chat(*turns: tuple[str, str]) -> Conversation:
    messages = [{"role": role, "content": content} for role, content in turns]
    return Conversation.model_validate({"number": 7, "messages": messages})


def learned_text(sample: Sample, tokenizer: Any) -> str:
    """What the model is asked to say, with a dot for every token it is not."""
    tokens = tokenizer.convert_ids_to_tokens(list(sample.input_ids))
    shown = (token if label != IGNORED else "." for token, label in zip(tokens, sample.labels, strict=True))
    return "".join(shown).replace("Ċ", "\n")


GREETING = chat(("user", "hi"), ("assistant", "yo"))
# <|im_start|> u s e r \n h i <|im_end|> \n  <|im_start|> a s s i s t a n t \n   = 10 + 11 tokens of prompt
PROMPT = "." * 21


def test_the_answer_and_its_end_are_learned_and_nothing_else(tokenizer: Any) -> None:
    [sample] = mask(GREETING, tokenizer)

    assert learned_text(sample, tokenizer) == PROMPT + "yo<|im_end|>\n"


def test_markers_of_the_template_win(tokenizer: Any) -> None:
    tokenizer.chat_template = MARKED

    [sample] = mask(GREETING, tokenizer)

    assert learned_text(sample, tokenizer) == PROMPT + "yo<|im_end|>."


def test_every_answer_of_a_longer_chat_is_learned(tokenizer: Any) -> None:
    conversation = chat(("user", "hi"), ("assistant", "yo"), ("user", "ok"), ("assistant", "no"))

    [sample] = mask(conversation, tokenizer)

    assert learned_text(sample, tokenizer) == PROMPT + "yo<|im_end|>\n" + PROMPT + "no<|im_end|>\n"


def test_a_template_that_changes_earlier_answers_gives_one_sample_per_answer(tokenizer: Any) -> None:
    tokenizer.chat_template = LAST_THINKS
    conversation = chat(("user", "hi"), ("assistant", "yo"), ("user", "ok"), ("assistant", "no"))

    first, second = mask(conversation, tokenizer)

    assert learned_text(first, tokenizer) == PROMPT + "[]yo<|im_end|>\n"
    earlier_answer = "." * 4  # y o <|im_end|> \n
    assert learned_text(second, tokenizer) == PROMPT + earlier_answer + PROMPT + "[]no<|im_end|>\n"


def test_a_token_of_several_bytes_keeps_its_place(tokenizer: Any) -> None:
    [sample] = mask(chat(("user", "é"), ("assistant", "é")), tokenizer)

    # é is two bytes, hence two tokens on either side.
    assert len(sample.input_ids) == 10 + 11 + 2 + 2
    assert [label != IGNORED for label in sample.labels] == [False] * 21 + [True] * 4


@pytest.mark.parametrize("template", [ANSWER_FIRST, None])
def test_a_template_that_hides_the_answer_is_refused(template: str | None, tokenizer: Any) -> None:
    tokenizer.chat_template = template

    with pytest.raises(TrainerError) as caught:
        make_samples([GREETING], tokenizer, max_tokens=100)

    assert caught.value.code is TrainerExit.TEMPLATE
    assert caught.value.exit_code == EXIT_CODES[TrainerExit.TEMPLATE] == 13


def test_a_row_the_template_refuses_is_named(tokenizer: Any) -> None:
    tokenizer.chat_template = REFUSES_SYSTEM + tokenizer.chat_template
    conversation = chat(("system", "be brief"), ("user", "hi"), ("assistant", "yo"))

    with pytest.raises(TrainerError, match="line 7 of the dataset: it refuses it: no system role"):
        make_samples([conversation], tokenizer, max_tokens=100)


def test_a_row_cut_before_its_answer_is_dropped_and_counted(tokenizer: Any) -> None:
    wordy = chat(("user", "x" * 50), ("assistant", "yo"))

    made = make_samples([GREETING, wordy], tokenizer, max_tokens=22)

    # 21 tokens of prompt and the "y": one learned token is enough to keep the first row.
    assert (len(made.samples), made.dropped, made.tokens, made.learned) == (1, 1, 22, 1)


def test_a_row_in_which_nobody_is_answered_is_dropped_and_counted(tokenizer: Any) -> None:
    unanswered = chat(("assistant", "hello"), ("user", "hi"))

    made = make_samples([unanswered, GREETING], tokenizer, max_tokens=100)

    assert (len(made.samples), made.dropped) == (1, 1)


def test_nothing_left_to_learn_is_a_fault_of_the_dataset(tokenizer: Any) -> None:
    with pytest.raises(TrainerError, match="its first 21 tokens") as caught:
        make_samples([GREETING], tokenizer, max_tokens=21)

    assert caught.value.code is TrainerExit.DATASET


# -- tools -------------------------------------------------------------------------------------------------

# A template that writes tools before the chat, and calls in the assistant's turn.
WITH_TOOLS = (
    "{% if tools %}{{ tools | tojson }}\n{% endif %}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{% for call in message['tool_calls'] or [] %}"
    "{{ call['function']['name'] + (call['function']['arguments'] | tojson) }}"
    "{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def with_tools() -> Conversation:
    call = {"function": {"name": "add", "arguments": {"a": 1}}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": "two"},
    ]
    return Conversation.model_validate(
        {"number": 7, "messages": messages, "tools": [{"function": {"name": "add"}}]}
    )


def test_a_call_is_learned_and_what_the_tool_answers_is_not(tokenizer: Any) -> None:
    tokenizer.chat_template = WITH_TOOLS

    [sample] = mask(with_tools(), tokenizer)

    learned = learned_text(sample, tokenizer).replace("Ġ", " ").replace(".", "")
    assert learned == 'add{"a": 1}<|im_end|>\ntwo<|im_end|>\n'


def test_a_template_that_passes_over_tools_is_refused(tokenizer: Any) -> None:
    with pytest.raises(TrainerError, match="line 7 of the dataset: it has no place for tools: add is not in"):
        mask(with_tools(), tokenizer)


# -- prompts and texts -------------------------------------------------------------------------------------


def test_of_a_prompt_only_the_completion_and_the_end_are_learned(tokenizer: Any) -> None:
    tokenizer.chat_template = None  # base models have none, and need none for this

    made = make_samples([Completion(number=1, prompt="2+2=", completion="4")], tokenizer, max_tokens=100)

    [sample] = made.samples
    assert learned_text(sample, tokenizer) == "....4" + tokenizer.eos_token
    assert sample.input_ids[-1] == tokenizer.eos_token_id


def test_a_text_is_learned_whole_with_its_end(tokenizer: Any) -> None:
    [sample] = mask(Passage(number=1, text="Once"), tokenizer)

    assert learned_text(sample, tokenizer) == "Once" + tokenizer.eos_token
    assert sample.learned == 4  # the first has nothing before it to be predicted from


def test_the_first_token_is_never_counted_as_learned() -> None:
    assert Sample(input_ids=(5, 6), labels=(5, IGNORED)).learned == 0
