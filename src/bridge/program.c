/* program.c - whether the program of an agent is on this machine. */
#include "bridge/bridge_int.h"

#include <limits.h>
#include <unistd.h>

static const char *path_of(char **env)
{
	for (; env && *env; env++)
		if (uar_str_starts(uar_str_c(*env), UAR_STR("PATH=")))
			return *env + sizeof "PATH=" - 1;
	return "/usr/local/bin:/usr/bin:/bin";
}

static bool is_program(uar_str dir, const char *name)
{
	char file[PATH_MAX];
	int n = snprintf(file, sizeof file, "%.*s/%s", UAR_FMT(dir), name);

	return n > 0 && (size_t)n < sizeof file && access(file, X_OK) == 0;
}

static bool is_in_path(const char *path, const char *name)
{
	for (uar_str rest = uar_str_c(path); rest.n;) {
		uar_str dir = uar_str_cut(rest, ':', &rest);

		if (dir.n && is_program(dir, name))
			return true;
	}
	return false;
}

const char *bridge_program(const struct uar_definition *def)
{
	return def->backend.program.n			   ? def->backend.program.p
	       : uar_str_is(def->info.kind, "claude_code") ? "claude"
							   : "codex";
}

uar_err bridge_check_program(struct uar_agents *h, uar_str agent_id, struct uar_error *error)
{
	const struct uar_bridge *b = UAR_OWNER(h, struct uar_bridge, port);
	const struct bridge_agent *a = bridge_find(b->set, agent_id);
	const char *name;

	if (!a)
		return UAR_ENOTFOUND;
	name = bridge_program(&a->entry->def);
	if (strchr(name, '/') ? access(name, X_OK) == 0 : is_in_path(path_of(b->o.env), name))
		return UAR_OK;
	return strchr(name, '/')
		       ? uar_error_set(error, UAR_ENOTFOUND,
				       "The program %.200s is not where the definition says.",
				       strrchr(name, '/') + 1)
		       : uar_error_set(error, UAR_ENOTFOUND,
				       "The program %.200s is not in the server's PATH.", name);
}
