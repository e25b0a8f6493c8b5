/* @NAME@: an entry that looks at words, one after the other.
 *
 *	make
 *	uar plugin check .                                      does it work?
 *	uar plugin check . count --args '{"text": "one three"}'   executes it, without a server
 *
 * uar/plugin.h is the interface. */
#include <string.h>

#include "uar/plugin.h"

static int count(struct uarp_run *run)
{
	const char *text = uarp_arg_str(run, "/text", ""), *longest = "";
	int words = 0, length = 0;

	while (*(text += strspn(text, " \t\n"))) {
		int n = (int)strcspn(text, " \t\n");

		if (uarp_cancelled(run)) /* somebody cancels the run */
			return UARP_CANCELED;
		uarp_progress(run, -1, uarp_printf(run, "looking at %.*s", n, text));
		if (n > length) {
			longest = text;
			length = n;
		}
		words++;
		text += n;
	}
	if (!words)
		return uarp_fail(run, "EMPTY", "there are no words");
	if (!uarp_export_text(run, uarp_printf(run, "%.*s", length, longest), "the longest word"))
		return uarp_fail(run, uarp_error(run), "the word was refused");
	return uarp_result(run, uarp_printf(run, "{\"words\":%d}", words));
}

static const struct uarp_entry entries[] = { { "count", count }, { NULL, NULL } };
UARP_PLUGIN(entries);
