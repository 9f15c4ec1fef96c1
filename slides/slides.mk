# make slides: the course as build/slides/balise.pdf and, with speaker notes, balise-notes.pdf; in
# French, balise.fr.pdf and balise-notes.fr.pdf. Included by the Makefile.
SLIDES_OF = slides/build.sh $(wildcard slides/*.tex slides/*.py slides/figures/*.tex slides/runs/*.txt) \
    $(wildcard common/bench/*.py common/bench/clusters/*.json) data/reviews/vocab.txt common/optim/optim.h

.PHONY: slides
slides: $(BUILD)/slides/balise.pdf

$(BUILD)/slides/balise.pdf: $(SLIDES_OF) $(START_FILES) $(BUILD)/grade
	test -z "$$(slides/build.sh --lacks)" || common/setup/setup.sh docs
	slides/build.sh $(BUILD)
