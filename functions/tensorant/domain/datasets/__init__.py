"""What a dataset must be, and what one pass over it tells.

The file is decompressed (`compression`), split into rows in their normal form (`rows`), each row is read
(`strict_json`) and judged (`formats`, `chats`, `tools`), and what was seen is counted (`tally`). `judging` is the
pass; `report` is what it leaves.
"""
