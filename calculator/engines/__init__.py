"""The serving engines: how kinds and formats become pages, blocks, pools and refusals.

Each package exports `VERSIONS`, oldest first, and `RUNNERS`, which answer the cases of its golden file.
"""
