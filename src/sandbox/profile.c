/* profile.c - profiles as JSON, their names, and what this kernel enforces of them. */
#include "base/sha256.h"
#include "json/json.h"
#include "json/jw.h"
#include "sandbox/sandbox.h"

static const char *const modes[] = {
	[UAR_SANDBOX_READ_ONLY] = "read_only",
	[UAR_SANDBOX_WORKSPACE_WRITE] = "workspace_write",
	[UAR_SANDBOX_FULL_ACCESS] = "full_access",
};

const char *uar_sandbox_mode_name(enum uar_sandbox_mode m)
{
	return modes[m];
}

enum uar_sandbox_mode uar_sandbox_mode_parse(uar_str name)
{
	int m = 0;

	while (m < UAR_SANDBOX_MODE_COUNT && !uar_str_is(name, modes[m]))
		m++;
	return (enum uar_sandbox_mode)m;
}

static void put_roots(struct uar_jw *w, const char *key, const uar_str *roots, size_t count)
{
	uar_jw_arr(w, key);
	for (size_t i = 0; i < count; i++)
		uar_jw_str(w, NULL, roots[i]);
	uar_jw_close(w);
}

static void put_limit(struct uar_jw *w, const char *key, int64_t value)
{
	if (value)
		uar_jw_int(w, key, value);
}

void uar_sandbox_write(struct uar_jw *w, const struct uar_sandbox *s)
{
	uar_jw_cstr(w, "mode", modes[s->mode]);
	uar_jw_str(w, "cwd", s->cwd);
	put_roots(w, "read_roots", s->read_roots, s->read_count);
	put_roots(w, "write_roots", s->write_roots, s->write_count);
	uar_jw_obj(w, "network");
	uar_jw_cstr(w, "mode", s->network ? "full" : "none");
	uar_jw_close(w);
	uar_jw_obj(w, "process_limits");
	put_limit(w, "cpu_s", s->limits.cpu_s);
	put_limit(w, "memory_bytes", s->limits.memory_bytes);
	put_limit(w, "files", s->limits.files);
	put_limit(w, "processes", s->limits.processes);
	put_limit(w, "wall_ms", s->limits.wall_ms);
	uar_jw_close(w);
	uar_jw_bool(w, "tty", s->tty);
}

static uar_err read_roots(const struct uar_json *j, uar_str *out, size_t *out_count,
			  struct uar_error *error)
{
	size_t n = 0;

	if (!j || j->kind != UAR_JSON_ARRAY)
		return uar_error_set(error, UAR_EINVALID, "a list of folders is missing");
	for (const struct uar_json *one = j->first; one; one = one->next) {
		uar_str path = uar_json_str(one, UAR_STR(""));

		if (n == UAR_LIMIT_SANDBOX_ROOTS)
			return uar_error_set(error, UAR_ETOOBIG, "more than %d folders",
					     UAR_LIMIT_SANDBOX_ROOTS);
		if (!path.n || path.p[0] != '/' || path.n >= UAR_LIMIT_SANDBOX_PATH ||
		    memchr(path.p, 0, path.n))
			return uar_error_set(error, UAR_EINVALID, "a folder is no absolute path");
		out[n++] = path;
	}
	*out_count = n;
	return UAR_OK;
}

static int64_t limit_of(const struct uar_json *j, const char *key)
{
	int64_t value = uar_json_int(uar_json_get(j, uar_str_c(key)), 0);

	return value > 0 ? value : 0;
}

uar_err uar_sandbox_read(const struct uar_json *j, struct uar_sandbox *out, struct uar_error *error)
{
	const struct uar_json *limits = uar_json_get(j, UAR_STR("process_limits"));
	uar_str network = uar_json_str(uar_json_pointer(j, UAR_STR("/network/mode")), UAR_STR(""));
	struct uar_sandbox s = {
		.mode = uar_sandbox_mode_parse(uar_json_text(j, "mode")),
		.network = uar_str_is(network, "full"),
		.tty = uar_json_bool(uar_json_get(j, UAR_STR("tty")), false),
		.cwd = uar_json_text(j, "cwd"),
		.limits = { .cpu_s = limit_of(limits, "cpu_s"),
			    .memory_bytes = limit_of(limits, "memory_bytes"),
			    .files = limit_of(limits, "files"),
			    .processes = limit_of(limits, "processes"),
			    .wall_ms = limit_of(limits, "wall_ms") },
	};
	uar_err e;

	if (s.mode == UAR_SANDBOX_MODE_COUNT || !s.cwd.n || s.cwd.p[0] != '/' ||
	    s.cwd.n >= UAR_LIMIT_SANDBOX_PATH || (!s.network && !uar_str_is(network, "none")))
		return uar_error_set(error, UAR_EINVALID, "the profile is incomplete");
	e = read_roots(uar_json_get(j, UAR_STR("read_roots")), s.read_roots, &s.read_count, error);
	if (!e)
		e = read_roots(uar_json_get(j, UAR_STR("write_roots")), s.write_roots,
			       &s.write_count, error);
	if (!e)
		*out = s;
	return e;
}

uar_err uar_sandbox_id(const struct uar_sandbox *s, char out[UAR_SANDBOX_ID + 1])
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SANDBOX_PROFILE);
	struct uar_jw w = uar_jw_begin(&text);
	char digest[UAR_SHA256_TEXT + 1];
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_sandbox_write(&w, s);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_sha256_hex(uar_buf_str(&text), digest);
	uar_buf_fini(&text);
	if (e)
		return e;
	memcpy(out, "sbx_", 4);
	memcpy(out + 4, digest, UAR_SANDBOX_ID - 4);
	out[UAR_SANDBOX_ID] = 0;
	return UAR_OK;
}

bool uar_sandbox_covers(const uar_str *roots, size_t count, uar_str path)
{
	for (size_t i = 0; i < count; i++) {
		uar_str root = roots[i];

		if (root.n == 1 || uar_str_eq(root, path))
			return true;
		if (uar_str_starts(path, root) && path.n > root.n && path.p[root.n] == '/')
			return true;
	}
	return false;
}

/* --- what is enforced -------------------------------------------------------------------- */

enum { LANDLOCK_SIGNALS = 6 }; /* the ABI that keeps signals inside */

static void add_gap(struct uar_sandbox_gaps *g, bool missing, const char *name)
{
	if (missing && g->count + 1 < UAR_SANDBOX_GAPS)
		g->at[g->count++] = name;
}

uar_err uar_sandbox_check(const struct uar_sandbox *s, const struct uar_sandbox_probe *p,
			  struct uar_sandbox_gaps *out, struct uar_error *error)
{
	bool fenced = s->mode != UAR_SANDBOX_FULL_ACCESS;
	struct uar_sandbox_gaps g = { .count = 0 };

	if (fenced && p->landlock < 1)
		return uar_error_set(error, UAR_ENOTIMPL,
				     "this kernel has no Landlock: the sandbox %s cannot be "
				     "enforced, and the command does not run",
				     modes[s->mode]);
	if (!p->seccomp)
		return uar_error_set(error, UAR_ENOTIMPL,
				     "this kernel has no seccomp filters: the network and system "
				     "calls cannot be restricted, and the command does not run");
	add_gap(&g, fenced && p->landlock < LANDLOCK_SIGNALS, "signals");
	add_gap(&g, fenced && !p->notify, "file_metadata");
	add_gap(&g, !p->notify, "violation_reports");
	add_gap(&g, s->limits.memory_bytes != 0, "memory_total");
	*out = g;
	return UAR_OK;
}
