"""One module a Lambda: parse, call one service, map."""
