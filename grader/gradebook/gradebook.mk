# Handing in, grading a class, and the handout. Included by the Makefile.

BOOK_LIBS = -larchive -ljansson -lxml2 -lxxhash -lcsv -lutf8proc $(MPI_LIBS) -lm
BOOK_SOURCES := $(wildcard grader/gradebook/*.c)
VERSION = 1.0
# The kit's version contains a checksum of points, start files and headers, so that the gradebook
# recognises hand-ins made with an older handout.
$(BUILD)/generated/kit_version.h: $(wildcard grader/labs/lab[0-9]*.c) grader/labs.mk common/balise.h \
        common/balise_mpi.h $(START_FILES)
	mkdir -p $(@D)
	printf '#define BALISE_VERSION "$(VERSION)+%.8s"\n' "$$(cat $^ | sha256sum)" > $@
$(call double,$(BOOK_SOURCES)): $(BUILD)/generated/kit_version.h
$(call double,$(BOOK_SOURCES)): CPPFLAGS += -include $(BUILD)/generated/kit_version.h

$(BUILD)/hand-in: $(call double,$(patsubst %,grader/gradebook/%.c,hand_in manifest files))
$(BUILD)/gradebook: $(call double,$(filter-out grader/gradebook/hand_in.c,$(BOOK_SOURCES)))
$(BUILD)/hand-in $(BUILD)/gradebook: $(JUDGE_PARTS) | $(CATALOGUES)
	$(link_judge) $(BOOK_LIBS) $(or_full)

# A checksum of everything in the kit that a verdict depends on.
$(BUILD)/generated/kit.txt: $(BUILD)/generated/grading.sh $(BUILD)/grade $(BUILD)/runners/idle grader/compile-lab.sh \
        grader/lab-object.sh grader/enclose.c grader/lab-calls.txt grader/limits.sh grader/link-runner.sh \
        grader/gradebook/grade-one.sh $(sort $(foreach lab,$(LABS),$(call test_objects,$(lab)))) $(START_FILES) \
        common/balise.h common/balise_mpi.h
	cat $^ | sha256sum | cut -c 1-64 > $@

.PHONY: hand-in gradebook board handout
hand-in: $(BUILD)/hand-in
	mkdir -p $(BUILD)/hand-in-files
	$(BUILD)/hand-in --name "$(if $(filter command%,$(origin NAME)),$$NAME)" \
	    --predictions $(BUILD)/verdicts/predictions.json \
	    --out "$${OUT:-$(BUILD)/hand-in-files/$$NAME.tar.gz}"

grade_all = $(BUILD)/gradebook --build $(BUILD) --dir "$$DIR" --out $(1) $(call option,--seed,$(SEED)) \
    $(if $(filter command% environment%,$(origin JOBS)),$(call option,--jobs,$(JOBS))) \
    $(call option,--sandbox,$(SANDBOX)) $(LOCAL_CASES)
gradebook: $(BUILD)/gradebook $(BUILD)/generated/kit.txt
	$(RELEASE)
	$(call grade_all,"$$OUT") $(call option,--part,$(PART))

# Verdicts and names stay in BUILD/board, because everyone may be able to read the page's folder. The
# page is also made if some labs could not be graded (status 1).
board: $(BUILD)/gradebook $(BUILD)/generated/kit.txt
	$(RELEASE)
	mkdir -p $(BUILD)/board $(BUILD)/report
	$(MAKE_PAGE)board.py begin $(call PAGE,board)
	$(call grade_all,$(BUILD)/board/board.json) --board $(if $(NAMES),--names); \
	    status=$$?; [ $$status -lt 2 ] || exit $$status; \
	    NAMES=$(call quoted,$(NAMES)) $(MAKE_PAGE)board.py $(BUILD)/board/board.json $(call PAGE,board) && exit $$status

handout: | $(CATALOGUES)
	HANDED_OUT='$(foreach lab,$(LABS),$(call lab_file,$(lab)))' GIVEN_CFLAGS='$(filter-out -g,$(LAB_CFLAGS))' \
	    GIVEN_EXPORTS='$(LAB_1_EXPORTS)' grader/handout/handout.sh $(BUILD) $(INDEPENDENT)
