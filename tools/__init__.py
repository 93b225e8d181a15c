"""Development tools: standard library only, started with `python3 tools/dev.py TASK`."""
