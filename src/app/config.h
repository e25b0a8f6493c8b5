/* config.h - the settings: where they come from and what they may be.
 *
 * A setting is a row of config.def. Its value comes from the first of: a flag,
 * the environment, the configuration file, the default. Whatever is unknown or
 * malformed anywhere is an error and nothing is guessed, but for unknown UAR_...
 * variables: others may have set them, so they are warnings. A secret's value is never part of a
 * message or a listing. */
#ifndef UAR_APP_CONFIG_H
#define UAR_APP_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "json/jw.h"

enum uar_config_type {
	UAR_CONFIG_STRING,
	UAR_CONFIG_SECRET,
	UAR_CONFIG_INT,
	UAR_CONFIG_BOOL,
	UAR_CONFIG_ENUM,     /* the position in its form */
	UAR_CONFIG_DURATION, /* microseconds */
	UAR_CONFIG_LIST,
	UAR_CONFIG_TABLE, /* a JSON object, kept as text */
};

/* cancel_terminal; log_level is an enum uar_log_level. */
enum uar_config_cancel { UAR_CONFIG_CANCEL_ERROR, UAR_CONFIG_CANCEL_DONE };
/* process_tools: modes are those of uar_sandbox_mode plus one. */
enum { UAR_CONFIG_PROCESSES_OFF };
enum uar_config_shutdown { UAR_CONFIG_SHUTDOWN_KEEP, UAR_CONFIG_SHUTDOWN_CANCEL };
enum uar_config_exec { UAR_CONFIG_EXEC_AUTO, UAR_CONFIG_EXEC_ON, UAR_CONFIG_EXEC_OFF };

struct uar_config_list {
	const char *const *items;
	size_t count;
};

typedef const char *uar_config_c_STRING; /* never NULL */
typedef const char *uar_config_c_SECRET; /* never NULL; empty: not set */
typedef int64_t uar_config_c_INT;
typedef bool uar_config_c_BOOL;
typedef int uar_config_c_ENUM;
typedef int64_t uar_config_c_DURATION;
typedef struct uar_config_list uar_config_c_LIST;
typedef const char *uar_config_c_TABLE; /* never NULL; empty: not set */

struct uar_config {
#define C(FIELD, KEY, TYPE, FORM, DEFAULT, ALIAS, RELOAD, DOC) uar_config_c_##TYPE FIELD;
#include "app/config.def"
#undef C
};

enum {
	UAR_CONFIG_COUNT = 0
#define C(FIELD, KEY, TYPE, FORM, DEFAULT, ALIAS, RELOAD, DOC) +1
#include "app/config.def"
#undef C
};

struct uar_config_row {
	const char *key, *form, *initial, *alias, *doc;
	enum uar_config_type type;
	bool reload;
	size_t offset;
};
extern const struct uar_config_row uar_config_rows[UAR_CONFIG_COUNT];

enum uar_config_source {
	UAR_CONFIG_FROM_DEFAULT,
	UAR_CONFIG_FROM_FILE,
	UAR_CONFIG_FROM_ENV,
	UAR_CONFIG_FROM_FLAG
};

/* One setting given on the command line. */
struct uar_config_flag {
	const struct uar_config_row *row;
	const char *value;
	bool in_file; /* --token-file: the value names the file that holds the secret */
};

/* Borrowed as long as a set made from it lives: reload reads it again. */
struct uar_config_input {
	const struct uar_config_flag *flags; /* a later one wins */
	size_t flag_count;
	char *const *env; /* like environ; NULL: empty */
	const char *file; /* --config; NULL: $UAR_CONFIG, else config.json of the data directory */
	bool client;	  /* only what finds a server counts: aliases are not read */
	bool strict;	  /* an unknown UAR_... variable is a problem, not a warning */
};

struct uar_config_set {
	struct uar_config value;
	struct {
		enum uar_config_source source;
		const char *where; /* "--model", "UAR_MODEL", "config.json:3:2", "default" */
	} origin[UAR_CONFIG_COUNT];
	const char *file;     /* the file that was read, NULL: none */
	const char *warnings; /* a line each, "" without any */
	struct uar_config_input input;
	struct uar_arena arena; /* owns the strings */
};

/* Every problem becomes one line of `problems`, and with it every warning; UAR_EINVALID when the
 * value of a flag is among them, else UAR_ECONFIG. */
UAR_MUST_CHECK uar_err uar_config_load(const struct uar_config_input *in,
				       struct uar_config_set **out, struct uar_buf *problems);
void uar_config_destroy(struct uar_config_set *set);

/* What reload found: rows whose value differs, and whether they took effect. */
struct uar_config_changes {
	size_t count;
	struct {
		const struct uar_config_row *row;
		bool applied;
	} of[UAR_CONFIG_COUNT];
};
/* Reads all sources again. The new set has the new values of the rows that may
 * be reloaded and the old values of the others; `old` stays as it is. */
UAR_MUST_CHECK uar_err uar_config_reload(const struct uar_config_set *old,
					 struct uar_config_set **out,
					 struct uar_config_changes *changes,
					 struct uar_buf *problems);

/* --- rows ---------------------------------------------------------------- */
/* By key, '-' and '_' alike; NULL when there is none. With `out_in_file` not
 * NULL, "<secret>_file" is found too. */
const struct uar_config_row *uar_config_find(uar_str key, bool *out_in_file);
/* The nearest key for "did you mean", NULL when none is near. */
const char *uar_config_nearest(uar_str key);

/* --- environment (config_env.c) ------------------------------------------------ */
/* The value of a variable in an environment; NULL when absent or empty. */
const char *uar_config_env(char *const *env, const char *name);
/* Of the variable UAR_<KEY>, whose key is given in lower case: is it none of the settings'
 * business, such as what Kubernetes sets for a service named uar? */
bool uar_config_is_foreign(uar_str key, uar_str value);

/* --- use (config_use.c) ----------------------------------------------------- */
/* Would a server with these settings use what the row's alias holds? Where it would not, a
 * value of the wrong form is no error: the variable is not UAR's own. */
bool uar_config_alias_matters(const struct uar_config_row *row, const struct uar_config *c);
/* A line for each file that a setting names and that does not hold what it should; the error as
 * of uar_config_load. For who is about to serve. */
UAR_MUST_CHECK uar_err uar_config_check_files(const struct uar_config_set *set,
					      struct uar_buf *problems);

/* --- values (config_value.c) --------------------------------------------- */
/* Reads `text` by the row's type and form into its field of `c`. */
UAR_MUST_CHECK uar_err uar_config_parse(const struct uar_config_row *row, uar_str text,
					struct uar_arena *a, struct uar_config *c,
					struct uar_error *error);
/* The same for a value of a configuration file. */
UAR_MUST_CHECK uar_err uar_config_parse_json(const struct uar_config_row *row,
					     const struct uar_json *j, struct uar_arena *a,
					     struct uar_config *c, struct uar_error *error);
bool uar_config_same(const struct uar_config_row *row, const struct uar_config *a,
		     const struct uar_config *b);
/* "15s", "a, b"; a secret as <set> or <unset>. */
void uar_config_format(const struct uar_config_row *row, const struct uar_config *c,
		       struct uar_buf *out);
/* "1.5h" or ".5" in microseconds, without a unit seconds: digits, at most six more after a point,
 * which may stand first, a unit. Nothing is rounded. */
bool uar_config_read_duration(uar_str s, int64_t *out);
/* The expected form in words: "a number from 1 to 64". */
void uar_config_expected(const struct uar_config_row *row, struct uar_buf *out);
const char *uar_config_type_name(enum uar_config_type type);

/* --- listings (config_print.c) ------------------------------------------- */
void uar_config_print(const struct uar_config_set *set, struct uar_buf *out);
void uar_config_print_json(const struct uar_config_set *set, struct uar_buf *out);
void uar_config_print_help(struct uar_buf *out);

#endif
