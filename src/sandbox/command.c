/* command.c - splits a command line as a shell does: quotes, operators, substitutions. */
#include "sandbox/command.h"

#include <strings.h>

#include "base/buf.h"

/* A word; `op`: it is an operator between commands. */
struct word {
	uar_str text;
	bool op;
};

struct words {
	struct uar_arena *arena;
	struct word at[UAR_LIMIT_COMMAND_WORDS];
	size_t count;
	char *out; /* of the word that is being read */
	size_t n;
	bool open; /* there is one, maybe empty */
	bool complex, full;
};

/* --- words ------------------------------------------------------------------------------- */

static void end_word(struct words *w)
{
	if (!w->open)
		return;
	w->open = false;
	if (w->count == UAR_LIMIT_COMMAND_WORDS) {
		w->full = true;
		return;
	}
	w->at[w->count++] = (struct word){ { w->out, w->n }, false };
	w->out += w->n;
	w->n = 0;
}

static void add_op(struct words *w, uar_str text)
{
	end_word(w);
	if (w->count < UAR_LIMIT_COMMAND_WORDS)
		w->at[w->count++] = (struct word){ text, true };
	else
		w->full = true;
}

static void add_char(struct words *w, char c)
{
	w->open = true;
	w->out[w->n++] = c;
}

static bool begins_substitution(uar_str line, size_t i)
{
	return line.p[i] == '`' || (line.p[i] == '$' && i + 1 < line.n && line.p[i + 1] == '(');
}

/* From behind the quote; returns the place behind its end. */
static size_t read_quoted(struct words *w, uar_str line, size_t i, char quote)
{
	w->open = true;
	for (; i < line.n && line.p[i] != quote; i++) {
		if (quote == '"' && line.p[i] == '\\' && i + 1 < line.n)
			i++;
		else if (quote == '"')
			w->complex = w->complex || begins_substitution(line, i);
		add_char(w, line.p[i]);
	}
	return i + 1;
}

static size_t op_length(uar_str line, size_t i)
{
	char c = line.p[i], next = i + 1 < line.n ? line.p[i + 1] : 0;

	if (!memchr(";|&\n()", c, 6))
		return 0;
	return (c == '&' || c == '|' || c == ';') && next == c ? 2 : 1;
}

/* "2>&1" is no operator between commands. */
static bool is_redirection(const struct words *w, uar_str line, size_t i)
{
	return line.p[i] == '&' &&
	       ((w->open && w->n && (w->out[w->n - 1] == '>' || w->out[w->n - 1] == '<')) ||
		(i + 1 < line.n && line.p[i + 1] == '>'));
}

/* One character outside of quotes, or an operator; returns the place behind it. */
static size_t read_plain(struct words *w, uar_str line, size_t i)
{
	size_t op = is_redirection(w, line, i) ? 0 : op_length(line, i);
	char c = line.p[i];

	if (op) {
		add_op(w, uar_str_n(line.p + i, op));
		return i + op;
	}
	if (c == '\\' && i + 1 < line.n) {
		add_char(w, line.p[i + 1]);
		return i + 2;
	}
	if (c == ' ' || c == '\t' || c == '\r') {
		end_word(w);
	} else {
		w->complex = w->complex || begins_substitution(line, i);
		add_char(w, c);
	}
	return i + 1;
}

static void read_words(struct words *w, uar_str line)
{
	size_t i = 0;

	while (i < line.n && !w->full)
		i = line.p[i] == '\'' || line.p[i] == '"' ? read_quoted(w, line, i + 1, line.p[i])
							  : read_plain(w, line, i);
	end_word(w);
}

/* --- secrets ------------------------------------------------------------------------------- */

static bool contains_nocase(uar_str text, const char *part)
{
	size_t n = strlen(part);

	for (size_t i = 0; i + n <= text.n; i++)
		if (strncasecmp(text.p + i, part, n) == 0)
			return true;
	return false;
}

static bool names_secret(uar_str name)
{
	static const char *const words[] = { "password", "passwd", "secret",	 "token",
					     "api_key",	 "apikey", "api-key",	 "private_key",
					     "bearer",	 "auth",   "credential", "access_key" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (contains_nocase(name, words[i]))
			return true;
	return false;
}

static const uar_str hidden = UAR_STR("***");

/* The word as people may see it; *hide_next: its value is the next word. */
static uar_str shown_word(struct uar_arena *arena, uar_str word, bool *hide_next)
{
	uar_str value, name = uar_str_cut(word, '=', &value);
	bool hide = *hide_next;

	*hide_next = false;
	if (hide)
		return hidden;
	if (name.n < word.n)
		return names_secret(name) ? uar_arena_printf(arena, "%.*s=***", UAR_FMT(name))
					  : word;
	name = uar_str_cut(word, ':', &value);
	if (name.n < word.n && names_secret(name) && !uar_str_starts(value, UAR_STR("//")))
		return uar_arena_printf(arena, "%.*s: ***", UAR_FMT(name));
	*hide_next = word.n > 2 && word.p[0] == '-' && names_secret(word);
	return word;
}

/* --- what destroys --------------------------------------------------------------------------- */

static uar_str base_name(uar_str path)
{
	for (size_t i = path.n; i-- > 0;)
		if (path.p[i] == '/')
			return uar_str_from(path, i + 1);
	return path;
}

static bool has_flag(const struct word *at, size_t n, const char *shorts, const char *name)
{
	for (size_t i = 1; i < n; i++) {
		uar_str t = at[i].text;

		if (uar_str_is(t, name))
			return true;
		if (t.n > 1 && t.p[0] == '-' && t.p[1] != '-')
			for (const char *c = shorts; *c; c++)
				if (memchr(t.p + 1, *c, t.n - 1))
					return true;
	}
	return false;
}

static bool has_word(const struct word *at, size_t n, const char *word)
{
	for (size_t i = 1; i < n; i++)
		if (uar_str_is(at[i].text, word))
			return true;
	return false;
}

static bool git_destroys(const struct word *at, size_t n)
{
	if (has_word(at, n, "push"))
		return has_flag(at, n, "f", "--force") || has_word(at, n, "--force-with-lease") ||
		       has_word(at, n, "--mirror") || has_word(at, n, "--delete");
	if (has_word(at, n, "reset"))
		return has_word(at, n, "--hard");
	if (has_word(at, n, "clean"))
		return has_flag(at, n, "fdx", "--force");
	return has_word(at, n, "branch") && has_flag(at, n, "D", "--delete");
}

static bool name_destroys(uar_str name)
{
	static const char *const names[] = { "dd",	 "shred",  "wipefs",  "fdisk",
					     "parted",	 "mkswap", "reboot",  "shutdown",
					     "poweroff", "halt",   "killall", "truncate" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(name, names[i]))
			return true;
	return uar_str_starts(name, UAR_STR("mkfs"));
}

/* Words before the command itself: NAME=value, sudo, env, nohup, time, exec. */
static size_t skip_prefix(const struct word *at, size_t n)
{
	static const char *const wraps[] = { "sudo",	"env",	"nohup", "time", "exec",
					     "command", "nice", "xargs", "then", "do",
					     "else",	"{",	"!" };
	size_t i = 0;

	for (; i < n; i++) {
		size_t k = 0;

		if (uar_str_find(at[i].text, '=') < at[i].text.n)
			continue;
		while (k < ARRAY_LEN(wraps) && !uar_str_is(base_name(at[i].text), wraps[k]))
			k++;
		if (k == ARRAY_LEN(wraps))
			break;
	}
	return i;
}

static bool destroys(const struct word *at, size_t n)
{
	size_t skip = skip_prefix(at, n);
	uar_str name;

	if (skip == n)
		return false;
	at += skip;
	n -= skip;
	name = base_name(at[0].text);
	if (uar_str_is(name, "rm"))
		return has_flag(at, n, "rRf", "--recursive") || has_word(at, n, "--force");
	if (uar_str_is(name, "git"))
		return git_destroys(at, n);
	if (uar_str_is(name, "find"))
		return has_word(at, n, "-delete");
	if (uar_str_is(name, "chmod") || uar_str_is(name, "chown"))
		return has_flag(at, n, "R", "--recursive");
	return name_destroys(name);
}

/* sh -c LINE and what xargs or find -exec would start: the line behind it is looked at, too. */
static uar_str inner_line(const struct word *at, size_t n)
{
	size_t skip = skip_prefix(at, n);
	uar_str name;

	if (skip + 2 >= n)
		return UAR_STR_NONE;
	name = base_name(at[skip].text);
	if (!uar_str_is(name, "sh") && !uar_str_is(name, "bash") && !uar_str_is(name, "dash"))
		return UAR_STR_NONE;
	return uar_str_is(at[skip + 1].text, "-c") ? at[skip + 2].text : UAR_STR_NONE;
}

/* --- commands ------------------------------------------------------------------------------- */

static uar_err read_line(uar_str line, struct uar_arena *arena, bool inner,
			 struct uar_command_line *out);

static uar_err join(const struct word *at, size_t n, struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_COMMAND_SUMMARY * 2);
	bool hide_next = false;

	for (size_t i = 0; i < n && b.n < UAR_LIMIT_COMMAND_SUMMARY; i++) {
		uar_str word = shown_word(arena, at[i].text, &hide_next);

		if (i)
			uar_buf_add_char(&b, ' ');
		uar_buf_add_str(&b, uar_str_utf8_prefix(word, UAR_LIMIT_COMMAND_SUMMARY / 2));
	}
	for (size_t i = 0; i < b.n; i++)
		if ((unsigned char)b.p[i] < ' ' || b.p[i] == 0x7f)
			b.p[i] = ' ';
	*out = uar_arena_str(arena,
			     uar_str_utf8_prefix(uar_buf_str(&b), UAR_LIMIT_COMMAND_SUMMARY));
	uar_buf_fini(&b);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static uar_err add_part(const struct word *at, size_t n, struct uar_arena *arena, bool inner,
			struct uar_command_line *out)
{
	uar_str line = inner ? UAR_STR_NONE : inner_line(at, n);
	uar_err e = UAR_OK;

	if (!n)
		return UAR_OK;
	out->destructive = out->destructive || destroys(at, n);
	if (line.n)
		return read_line(line, arena, true, out);
	if (out->count == UAR_LIMIT_COMMAND_PARTS)
		out->complex = true;
	else
		e = join(at, n, arena, &out->parts[out->count]);
	out->count += !e && out->count < UAR_LIMIT_COMMAND_PARTS;
	return e;
}

static uar_err split(const struct words *w, struct uar_arena *arena, bool inner,
		     struct uar_command_line *out)
{
	size_t from = 0;
	uar_err e = UAR_OK;

	for (size_t i = 0; i <= w->count && !e; i++) {
		if (i < w->count && !w->at[i].op)
			continue;
		e = add_part(w->at + from, i - from, arena, inner, out);
		from = i + 1;
	}
	out->complex = out->complex || w->complex || w->full;
	return e;
}

static uar_err read_line(uar_str line, struct uar_arena *arena, bool inner,
			 struct uar_command_line *out)
{
	struct words *w = uar_arena_alloc(arena, sizeof *w);

	if (!w)
		return UAR_ENOMEM;
	if (line.n > UAR_LIMIT_COMMAND_BYTES)
		return UAR_ETOOBIG;
	w->arena = arena;
	w->out = uar_arena_bytes(arena, line.n + 1);
	if (!w->out)
		return UAR_ENOMEM;
	read_words(w, line);
	if (!inner) {
		uar_err e = join(w->at, w->count, arena, &out->summary);

		if (e)
			return e;
	}
	return split(w, arena, inner, out);
}

uar_err uar_command_read_line(uar_str line, struct uar_arena *arena, struct uar_command_line *out)
{
	memset(out, 0, sizeof *out);
	return read_line(line, arena, false, out);
}

uar_err uar_command_read_words(const uar_str *words, size_t count, struct uar_arena *arena,
			       struct uar_command_line *out)
{
	struct word *at = uar_arena_alloc(arena, (count + 1) * sizeof *at);
	uar_err e;

	memset(out, 0, sizeof *out);
	if (!at)
		return UAR_ENOMEM;
	for (size_t i = 0; i < count; i++)
		at[i].text = words[i];
	e = join(at, count, arena, &out->summary);
	return e ? e : add_part(at, count, arena, false, out);
}
