# Compiles common/po/LANGUAGE.po into the catalogue that gettext reads, for C, Python and shell
# alike (common/base/language.h). Without msgfmt, messages are in English. Included by the Makefile.
LANGUAGES = fr
export TEXTDOMAIN := balise
export TEXTDOMAINDIR := $(abspath $(BUILD))/locale
CATALOGUES := $(if $(call in_path,msgfmt),$(LANGUAGES:%=$(BUILD)/locale/%/LC_MESSAGES/balise.mo))
# A locale in which gettext translates, wherever the kit is: C.UTF-8 under another name.
$(CATALOGUES): | $(BUILD)/locale/messages.utf8
$(BUILD)/locale/messages.utf8:
	mkdir -p $(@D)
	ln -s /usr/lib/locale/C.utf8 $@
$(BUILD)/locale/%/LC_MESSAGES/balise.mo: common/po/%.po
	mkdir -p $(@D)
	msgfmt --check-format $< -o $@

# The sources whose messages are translated: the grader, the student's commands, and the runtime's
# errors.
SAID_IN_C = $(sort $(filter-out $(wildcard common/tests/* common/*/tests/* common/*/bench/*), \
              $(wildcard common/*/*.[ch] common/*/*.cc common/*/*/*.[ch] common/*/*/*.cu \
              $(addprefix grader/,judge/*.c judge/*/*.c judge/report/formats/*.c \
              labs/*.[ch] labs/*/*.c runner/*.c gradebook/*.c))))
SAID_IN_PYTHON = $(sort $(wildcard common/base/*.py data/archive_to_csv.py \
                   $(addsuffix /*.py,grader grader/loop $(addprefix common/,bench page plot))))
SAID_IN_PAGES = $(wildcard common/page/*.js)
SAID_IN_SHELL = $(sort $(wildcard $(addsuffix /*.sh, \
                  grader grader/handout data $(addprefix common/,base train slurm setup))))
GATHER = xgettext --from-code=UTF-8 --no-location
# Messages outside those sources: the texts of make help; the purposes of packages and their modules
# on clusters; what was run on a GPU (doctor_gpu.sh); the messages of the pages' scripts.
$(BUILD)/generated/lists.h: common/setup/packages common/setup/settings common/backend/cuda/RESULTS.md $(SAID_IN_PAGES)
	mkdir -p $(@D)
	sed -nE 's/^[a-z]+\?{0,2} +[^ ]+ +[^ ]+ +(.*[^ ])  \((.*)\)$$/N_("\1")\nN_("\2")/p' common/setup/packages | \
	    grep -v '^N_("\(module\|spack\) load ' > $@
	common/setup/settings.sh texts | sed 's/["\\]/\\&/g; s/.*/N_("&")/' >> $@
	awk 'NR > 1 && NF { text = text blank $$0; blank = " " } NR > 1 && !NF && text { exit } \
	    END { print "N_(\"" text "\")" }' common/backend/cuda/RESULTS.md >> $@
	grep -ho '\bsay("[^"]*"' $(SAID_IN_PAGES) | sed 's/^say(\(.*\)/N_(\1)/' >> $@
# Functions that translate their arguments: which argument is a hint, and which the sentence.
HINTS_OF = -kproblem_set:3 -kmisuse:1 -kmisuse_since:2 -kmisplaced:1 -kmisplaced_with:2
SENTENCE_IN = problem_set:4 misuse:2 misuse_since:3 misplaced:2 misplaced_with:3
SENTENCES_OF = $(SENTENCE_IN:%=-k%) $(SENTENCE_IN:%=--flag=%:c-format)
$(BUILD)/generated/balise.pot: common/po/words.mk $(BUILD)/generated/lists.h $(SAID_IN_C) $(SAID_IN_PYTHON) \
                               $(SAID_IN_SHELL)
	mkdir -p $(@D)
	rm -f $@.*
	$(GATHER) -L C -k_ -kN_ $(HINTS_OF) -o $@.hints.pot $(BUILD)/generated/lists.h $(SAID_IN_C) \
	    2> $@.warnings # of empty hints
	$(GATHER) -L C -k $(SENTENCES_OF) -o $@.c.pot $(SAID_IN_C) 2>> $@.warnings
	$(GATHER) -L Python -kcounted:1,2 -kpgettext:1c,2 -o $@.py.pot $(SAID_IN_PYTHON)
	$(GATHER) -L Shell -ksay -ksaid -ktell -o $@.sh.pot $(SAID_IN_SHELL)
	for part in hints c py sh; do [ ! -e $@.$$part.pot ] || sed -i 's/charset=CHARSET/charset=UTF-8/' $@.$$part.pot; done
	msgcat --use-first --sort-output $$(find $@.* -name '*.pot') -o $@
# Adds new sentences to the languages' files, untranslated, and removes unused ones.
.PHONY: words
words: $(BUILD)/generated/balise.pot
	for file in $(LANGUAGES:%=common/po/%.po); do \
	    msgmerge --quiet --no-fuzzy-matching --sort-output --update --backup=none $$file $< && \
	    msgattrib --no-obsolete $$file -o $$file && sed -i '/^"\(POT-Creation-Date\|Report-Msgid\)/d' $$file; \
	    msgfmt --statistics -o /dev/null $$file; \
	done
