/* author_files.c - the SDKs and the examples, so that `uar` alone is enough to begin. */
#include "app/author.h"

#include "base/embed.h"

/* F(NAME, LANG, SOURCE, PATH in the new folder) */
#define FILES                                                                                      \
	F(manifest, NULL, "sdk/templates/plugin.json", "plugin.json")                              \
	F(py_main, "python", "sdk/templates/python/main.py", "main.py")                            \
	F(py_sdk, "python", "sdk/python/uar_plugin.py", "uar_plugin.py")                           \
	F(c_main, "c", "sdk/templates/c/main.c", "main.c")                                         \
	F(c_make, "c", "sdk/templates/c/Makefile", "Makefile")                                     \
	F(c_header, "c", "include/uar/plugin.h", "uar/plugin.h")                                   \
	F(c_sdk, "c", "sdk/c/uar_plugin.c", "uar/uar_plugin.c")                                    \
	F(c_run, "c", "sdk/c/uar_plugin_run.h", "uar/uar_plugin_run.h")                            \
	F(c_json, "c", "sdk/c/uar_plugin_json.h", "uar/uar_plugin_json.h")                         \
	F(ts_main, "ts", "sdk/templates/ts/main.mjs", "main.mjs")                                  \
	F(ts_sdk, "ts", "sdk/typescript/uar_plugin.mjs", "uar_plugin.mjs")                         \
	F(ts_types, "ts", "sdk/typescript/uar_plugin.d.mts", "uar_plugin.d.mts")

#define F(NAME, LANG, SOURCE, PATH) UAR_EMBED(uar_author_##NAME, SOURCE);
FILES
#undef F

static const struct {
	const char *lang, *path, *start, *end;
} files[] = {
#define F(NAME, LANG, SOURCE, PATH) { LANG, PATH, uar_author_##NAME, uar_author_##NAME##_end },
	FILES
#undef F
};

static const struct {
	const char *lang, *command;
} languages[] = {
	{ "python", "[\"python3\", \"main.py\"]" },
	{ "c", "[\"./main\"]" },
	{ "ts", "[\"node\", \"main.mjs\"]" },
};

bool uar_author_next(const char *lang, size_t *at, struct uar_author_file *out)
{
	for (; *at < ARRAY_LEN(files); ++*at) {
		if (files[*at].lang && strcmp(files[*at].lang, lang) != 0)
			continue;
		out->path = files[*at].path;
		out->text =
			uar_str_n(files[*at].start, (size_t)(files[*at].end - files[*at].start));
		++*at;
		return true;
	}
	return false;
}

const char *uar_author_command(const char *lang)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++)
		if (!strcmp(languages[i].lang, lang))
			return languages[i].command;
	return NULL;
}
