# Every task, with all of its set-up, is in tools/dev.py; `python3 tools/dev.py --help` tells more.
PYTHON ?= python3
ARGS ?=
BPY ?=

.PHONY: quick test everything window fuzz lint build demo bench bench-quality samples pictures environments

quick: ; @$(PYTHON) tools/dev.py quick
test: ; @$(PYTHON) tools/dev.py test $(addprefix --bpy=,$(BPY)) -- $(ARGS)
everything: ; @$(PYTHON) tools/dev.py everything -- $(ARGS)
window: ; @$(PYTHON) tools/dev.py window -- $(ARGS)
fuzz: ; @$(PYTHON) tools/dev.py fuzz $(addprefix --bpy=,$(BPY)) -- $(ARGS)
lint: ; @$(PYTHON) tools/dev.py lint
build: ; @$(PYTHON) tools/dev.py build
demo: ; @$(PYTHON) tools/dev.py demo -- $(ARGS)
bench: ; @$(PYTHON) tools/dev.py bench -- $(ARGS)
bench-quality: ; @$(PYTHON) tools/dev.py bench-quality -- $(ARGS)
samples: ; @$(PYTHON) tools/dev.py samples -- $(ARGS)
pictures: ; @$(PYTHON) tools/dev.py pictures -- $(ARGS)
environments: ; @$(PYTHON) tools/dev.py environments
