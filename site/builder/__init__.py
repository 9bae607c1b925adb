"""Makes dist/ from this repository, with the standard library only: build.py starts before .venv exists."""
