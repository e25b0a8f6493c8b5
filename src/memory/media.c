/* media.c - endings of names. */
#include "memory/media.h"

static const struct {
	const char *ending, *type;
} types[] = {
	{ ".md", "text/markdown" },
	{ ".markdown", "text/markdown" },
	{ ".html", "text/html" },
	{ ".htm", "text/html" },
	{ ".pdf", "application/pdf" },
	{ ".txt", "text/plain" },
	{ ".rst", "text/plain" },
	{ ".csv", "text/plain" },
	{ ".json", "text/plain" },
	{ ".yaml", "text/plain" },
	{ ".yml", "text/plain" },
	{ ".toml", "text/plain" },
	{ ".c", "text/x-c" },
	{ ".h", "text/x-c" },
	{ ".cc", "text/x-c++" },
	{ ".cpp", "text/x-c++" },
	{ ".py", "text/x-python" },
	{ ".rs", "text/x-rust" },
	{ ".go", "text/x-go" },
	{ ".java", "text/x-java" },
	{ ".js", "text/javascript" },
	{ ".mjs", "text/javascript" },
	{ ".ts", "text/x-typescript" },
	{ ".tsx", "text/x-typescript" },
	{ ".sh", "text/x-shellscript" },
	{ ".sql", "text/x-sql" },
};

static const char *known_type(uar_str path)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		uar_str ending = uar_str_c(types[i].ending);

		if (path.n >= ending.n &&
		    uar_str_eq_nocase(uar_str_from(path, path.n - ending.n), ending))
			return types[i].type;
	}
	return NULL;
}

uar_str uar_media_type_of(uar_str path)
{
	const char *type = known_type(path);

	return uar_str_c(type ? type : "text/plain");
}

bool uar_media_is_read(uar_str path)
{
	return known_type(path) != NULL;
}
