# make docs: the reference as build/docs/index.html. Included by the Makefile, after slides.mk.
DOCUMENTED = $(shell find common grader \( -name '*.h' -o -name '*.c' \) -not -path '*/tests/*') \
    $(wildcard README.md labs/*/README.md grader/README.md slides/README.md common/setup/docs/* common/setup/docs/*/*) \
    $(SLIDES_OF)

.PHONY: docs
docs: $(BUILD)/docs/index.html

$(BUILD)/docs/index.html: $(if $(filter docs $(BUILD)/docs/index.html,$(MAKECMDGOALS)),$(DOCUMENTED))
	test -z "$$(common/setup/docs/build.sh --lacks && slides/build.sh --lacks figures)" || common/setup/setup.sh docs
	common/setup/docs/figures.sh $(BUILD) $(MAKE) figures
	common/setup/docs/build.sh $(BUILD)
