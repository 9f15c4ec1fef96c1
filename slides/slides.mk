# make slides: the course as build/slides/balise.pdf and, with speaker notes, balise-notes.pdf; in
# French, balise.fr.pdf and balise-notes.fr.pdf. make figures: the figures that the labs' pages of
# make docs show, as build/slides/figures/NAME.svg. Included by the Makefile.
SLIDES_OF = slides/build.sh $(wildcard slides/*.tex slides/*.py slides/figures/*.tex slides/runs/*.txt) \
    $(wildcard common/bench/*.py common/bench/clusters/*.json) data/reviews/vocab.txt common/optim/optim.h

.PHONY: slides figures
slides: $(BUILD)/slides/balise.pdf
figures: $(BUILD)/slides/figures/list.tsv

$(BUILD)/slides/balise.pdf: $(SLIDES_OF) $(START_FILES) $(BUILD)/grade $(DRY_RUN)
	test -z "$$(slides/build.sh --lacks)" || common/setup/setup.sh docs
	slides/build.sh $(BUILD)

# No figure here needs a compiled program, so make docs works without MPI.
$(BUILD)/slides/figures/list.tsv: $(SLIDES_OF)
	test -z "$$(slides/build.sh --lacks figures)" || common/setup/setup.sh docs
	slides/build.sh --figures $(BUILD)
