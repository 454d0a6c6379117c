"""Keeps secrets out of everything that leaves the machine as text."""

from __future__ import annotations

import re

HIDDEN = "[hidden]"

_URL_QUERY = re.compile(r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>]+")
"""Presigned URLs carry their right in the query; the path may be shown."""
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}")


class Redactor:
    """Hides the given secrets, the queries of all URLs, and hub tokens."""

    def __init__(self, *secrets: str) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = _URL_QUERY.sub(rf"\1?{HIDDEN}", text)
        return _HUB_TOKEN.sub(HIDDEN, text)
