# Sentences in the reader's language (common/base/language.h): from common/po/LANGUAGE.po into a catalogue that gettext reads, in C,
# Python and the shell alike. Without msgfmt they are English.
LANGUAGES = fr
export TEXTDOMAIN := balise
export TEXTDOMAINDIR := $(abspath $(BUILD))/locale
CATALOGUES := $(if $(shell command -v msgfmt),$(LANGUAGES:%=$(BUILD)/locale/%/LC_MESSAGES/balise.mo))
$(BUILD)/locale/%/LC_MESSAGES/balise.mo: common/po/%.po
	mkdir -p $(@D)
	msgfmt --check-format $< -o $@

# What is said where: the grader, the student's loop, and the runtime's errors.
SAID_IN_C = $(sort $(filter-out $(wildcard common/*/tests/*.c common/backend/bench/*.c),$(wildcard common/*/*.[ch] common/*/*/*.[ch] common/*/*/*.cu)) \
              $(wildcard $(addprefix grader/,judge/*.c judge/*/*.c judge/report/formats/*.c labs/*.[ch] runner/*.c gradebook/*.c)))
SAID_IN_PYTHON = $(sort $(wildcard common/base/language.py grader/loop/*.py common/page/*.py common/plot/*.py data/archive_to_csv.py))
SAID_IN_PAGES = $(wildcard common/page/*.js)
SAID_IN_SHELL = $(sort $(wildcard grader/*.sh grader/handout/*.sh common/base/*.sh common/train/*.sh common/slurm/*.sh common/setup/*.sh data/*.sh))
SAID_IN_MAKE = Makefile common/backend/backend.mk common/slurm/slurm.mk
GATHER = xgettext --from-code=UTF-8 --no-location
# What packages are for and where a cluster has them; whoever prints them looks them up.
# What was run on a GPU (doctor_gpu.sh), what makefiles tell (tell.mk) and scripts of pages say.
$(BUILD)/generated/lists.h: common/setup/packages common/backend/cuda/RESULTS.md $(SAID_IN_MAKE) $(SAID_IN_PAGES)
	mkdir -p $(@D)
	sed -nE 's/^[a-z]+\?? +[^ ]+ +[^ ]+ +(.*[^ ])  \((.*)\)$$/N_("\1")\nN_("\2")/p' common/setup/packages | grep -v '^N_("\(module\|spack\) load ' > $@
	awk 'NR > 1 && NF { text = text blank $$0; blank = " " } NR > 1 && !NF && text { exit } END { print "N_(\"" text "\")" }' common/backend/cuda/RESULTS.md >> $@
	grep -ho '(TELL) [a-z]* "[^"]*" "[^"]*"' $(SAID_IN_MAKE) | sed 's/^(TELL) [a-z]* \("[^"]*"\) \("[^"]*"\)$$/N_(\1)\nN_(\2)/' | grep -v '^N_("")' >> $@
	grep -ho '\bsay("[^"]*"' $(SAID_IN_PAGES) | sed 's/^say(\(.*\)/N_(\1)/' >> $@
# Functions that look up what they are passed: which of their arguments is a hint, and which the sentence.
HINTS_OF = -kproblem_set:3 -kmisuse:1 -kmisuse_since:2 -kmisplaced:1
SENTENCES_OF = $(foreach argument,problem_set:4 misuse:2 misuse_since:3 misplaced:2,-k$(argument) --flag=$(argument):c-format)
$(BUILD)/generated/balise.pot: common/po/words.mk $(BUILD)/generated/lists.h $(SAID_IN_C) $(SAID_IN_PYTHON) $(SAID_IN_SHELL)
	mkdir -p $(@D)
	rm -f $@.*
	$(GATHER) -L C -k_ -kN_ $(HINTS_OF) -o $@.hints.pot $(BUILD)/generated/lists.h $(SAID_IN_C) 2> $@.warnings # of empty hints
	$(GATHER) -L C -k $(SENTENCES_OF) -o $@.c.pot $(SAID_IN_C) 2>> $@.warnings
	$(GATHER) -L Python -kcounted:1,2 -kpgettext:1c,2 -o $@.py.pot $(SAID_IN_PYTHON)
	$(GATHER) -L Shell -ksay -ksaid -ktell -o $@.sh.pot $(SAID_IN_SHELL)
	for part in hints c py sh; do [ ! -e $@.$$part.pot ] || sed -i 's/charset=CHARSET/charset=UTF-8/' $@.$$part.pot; done
	msgcat --use-first --sort-output $$(find $@.* -name '*.pot') -o $@
# New sentences come into the files of the languages, untranslated; those that are said no more leave them.
.PHONY: words
words: $(BUILD)/generated/balise.pot
	for language in $(LANGUAGES); do msgmerge --quiet --no-fuzzy-matching --sort-output --update --backup=none common/po/$$language.po $< && \
	    msgattrib --no-obsolete common/po/$$language.po -o common/po/$$language.po && sed -i '/^"\(POT-Creation-Date\|Report-Msgid\)/d' common/po/$$language.po; msgfmt --statistics -o /dev/null common/po/$$language.po; done
