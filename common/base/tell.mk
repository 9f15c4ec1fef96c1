# Sentences of makefiles in the reader's language, by common/base/tell.sh; words.mk gathers them, from lines of this form alone:
# $(TELL) stop|error|line "SENTENCE" "HINT" ARGUMENTS...: for $(error), as an error that ends a recipe, as a line. A shell reads them.
TELL = TEXTDOMAIN=balise TEXTDOMAINDIR='$(abspath $(or $(BUILD),build))/locale' common/base/tell.sh

# quoted, TEXT: one word of a shell's, whatever stands in a value that somebody gave.
quoted = '$(subst ','\'',$(1))'
