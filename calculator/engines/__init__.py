"""The serving engines: how kinds and formats become pages, blocks, pools and refusals.

Each package exports `VERSIONS`, oldest first; its `cases` answer the golden file, for `check` alone.
"""
