/* kind.c - agent kinds and capability sets, and the small change of the library. */
#include "backend/int.h"

#include <time.h>

uint32_t uaa_abi_version(void)
{
	return (uint32_t)UAA_ABI_MAJOR << 16 | UAA_ABI_MINOR;
}

uaa_str uaa_str_c(const char *text)
{
	return (uaa_str){ text, text ? strlen(text) : 0 };
}

bool uab_take_struct(void *own, size_t size, const void *given, size_t least)
{
	const char *from = given;
	size_t n;

	memcpy(&n, given, sizeof n);
	if (n < least)
		return false;
	for (size_t i = size; i < n; i++)
		if (from[i])
			return false;
	memset(own, 0, size);
	memcpy(own, given, n < size ? n : size);
	return true;
}

const char *uaa_status_name(uaa_status status)
{
	switch (status) {
	case UAA_OK: return "UAA_OK";
	case UAA_E_UNKNOWN_BACKEND: return "UAA_E_UNKNOWN_BACKEND";
	case UAA_E_UNSUPPORTED_CAPABILITY: return "UAA_E_UNSUPPORTED_CAPABILITY";
	case UAA_E_INVALID_AGENT_KIND: return "UAA_E_INVALID_AGENT_KIND";
	case UAA_E_INVALID_REQUEST: return "UAA_E_INVALID_REQUEST";
	case UAA_E_BACKEND: return "UAA_E_BACKEND";
	case UAA_AGAIN: return "UAA_AGAIN";
	case UAA_EOS: return "UAA_EOS";
	case UAA_E_NOMEM: return "UAA_E_NOMEM";
	case UAA_E_ARG: return "UAA_E_ARG";
	}
	return "unknown uaa_status";
}

void uaa_free(void *memory)
{
	uar_free(memory);
}

int64_t uab_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

bool uaa_has_backend(uaa_str name)
{
	static const struct {
		const char *name;
		bool built;
	} known[] = { { "codex", AGENT_API_CODEX },
		      { "claude_code", AGENT_API_CLAUDE_CODE },
		      { "acp", AGENT_API_ACP } };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(uab_str(name), known[i].name))
			return known[i].built;
	return false;
}

/* --- kinds --- */

uaa_status uaa_kind_new(uaa_str id, uaa_kind **out, uaa_error **error)
{
	struct uaa_kind *k;

	if (!out)
		return uab_wrong(error, "out is NULL");
	if (!uab_is_kind(uab_str(id)))
		return uab_fail(error, UAA_E_INVALID_AGENT_KIND, UAR_STR_NONE,
				UAR_STR("must match ^[a-z][a-z0-9_]*$ with at most 128 bytes"));
	k = uar_zalloc(sizeof *k);
	if (!k || uab_copy(id, &k->id)) {
		uar_free(k);
		return UAA_E_NOMEM;
	}
	k->refs = 1;
	*out = k;
	return UAA_OK;
}

uaa_str uaa_kind_str(const uaa_kind *k)
{
	return k ? k->id : UAB_NONE;
}

int uaa_kind_compare(const uaa_kind *a, const uaa_kind *b)
{
	return uar_str_cmp(uab_str(uaa_kind_str(a)), uab_str(uaa_kind_str(b)));
}

uint64_t uaa_kind_hash(const uaa_kind *k)
{
	return k ? uar_str_hash(uab_str(k->id), 0) : 0;
}

uaa_kind *uaa_kind_ref(uaa_kind *k)
{
	if (k)
		atomic_fetch_add(&k->refs, 1);
	return k;
}

void uaa_kind_unref(uaa_kind *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	uar_free((char *)k->id.ptr);
	uar_free(k);
}

/* --- capabilities: a map without values --- */

struct uaa_caps {
	atomic_int refs;
	struct uab_pairs ids;
};

uaa_caps *uaa_caps_new(void)
{
	struct uaa_caps *c = uar_zalloc(sizeof *c);

	if (c)
		c->refs = 1;
	return c;
}

uaa_status uaa_caps_add(uaa_caps *c, uaa_str id)
{
	if (!c || !uab_is_key(uab_str(id)))
		return UAA_E_ARG;
	return uab_pairs_set(&c->ids, id, UAB_NONE);
}

uaa_status uab_caps_add_all(uaa_caps *c, const char *const *ids)
{
	for (; *ids; ids++) {
		uaa_status s = uaa_caps_add(c, uaa_str_c(*ids));

		if (s)
			return s;
	}
	return UAA_OK;
}

bool uaa_caps_contains(const uaa_caps *c, uaa_str id)
{
	size_t lo = 0, hi = c ? c->ids.n : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int d = uar_str_cmp(uab_str(id), uab_str(c->ids.at[mid].name));

		if (d == 0)
			return true;
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return false;
}

size_t uaa_caps_count(const uaa_caps *c)
{
	return c ? c->ids.n : 0;
}

uaa_str uaa_caps_at(const uaa_caps *c, size_t i)
{
	return c && i < c->ids.n ? c->ids.at[i].name : UAB_NONE;
}

uaa_caps *uaa_caps_ref(uaa_caps *c)
{
	if (c)
		atomic_fetch_add(&c->refs, 1);
	return c;
}

void uaa_caps_unref(uaa_caps *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	uab_pairs_fini(&c->ids);
	uar_free(c);
}
