# Thin names for the scripts in tools/.
.PHONY: build test lint bench demo soak deps clean
build: ; ./tools/build
test: ; ./tools/test
lint: ; ./tools/lint
bench: ; ./tools/bench
demo: ; ./tools/demo
soak: ; ./tools/soak
deps: ; ./tools/deps
clean: ; rm -rf build
.DEFAULT_GOAL := build
