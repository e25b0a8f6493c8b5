/* args.h - the words after `uar`, sorted into options, settings and operands.
 *
 * Options are --name VALUE, --name=VALUE or a single letter, and a switch stands
 * alone or has =true or =false; settings are rows of config.def as
 * --key-with-dashes. `--` ends both. Nothing unknown passes. */
#ifndef UAR_APP_ARGS_H
#define UAR_APP_ARGS_H

#include "app/config.h"
#include "app/limits.h"

struct uar_cli;

enum uar_opt {
#define O(NAME, LONG, SHORT, VALUE, DOC) UAR_OPT_##NAME,
#include "app/cli.def"
#undef O
	UAR_OPT_COUNT
};

struct uar_opt_row {
	const char *name, *value, *doc;
	char letter; /* 0: none */
};
extern const struct uar_opt_row uar_opt_rows[UAR_OPT_COUNT];

enum uar_verb_settings { UAR_VERB_NONE, UAR_VERB_CLIENT, UAR_VERB_ALL };

struct uar_verb {
	const char *name, *usage, *doc;
	int (*fn)(struct uar_cli *cli); /* exit status */
	unsigned min, max;		/* operands */
	uint64_t options;		/* one bit per enum uar_opt */
	enum uar_verb_settings settings;
};

struct uar_args {
	const char *option[UAR_OPT_COUNT]; /* NULL: not given; "" for a switch */
	const char *word[UAR_LIMIT_CLI_WORDS];
	size_t words;
	struct uar_config_flag flag[UAR_LIMIT_CLI_FLAGS];
	size_t flags;
	bool help; /* -h or --help stood anywhere before "--" */
};

/* argv without program and verb; all strings are borrowed. UAR_EINVALID names
 * the word that is wrong, never the value of a setting. */
UAR_MUST_CHECK uar_err uar_args_parse(const struct uar_verb *verb, int argc, char *const *argv,
				      struct uar_args *out, struct uar_error *error);
bool uar_verb_takes(const struct uar_verb *verb, enum uar_opt opt);
bool uar_verb_takes_setting(const struct uar_verb *verb, const struct uar_config_row *row);

#endif
