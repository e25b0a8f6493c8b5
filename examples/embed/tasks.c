/* tasks.c - a program with a runtime inside: it makes a task, lets an agent answer a message
 * and prints what happens.
 *
 *	cc -o tasks tasks.c -luar
 *	./tasks /tmp/state "good morning" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uar/uar.h>

/* The value of a member that is a string, up to 127 bytes. A real program uses its JSON library. */
static const char *string_member(const char *json, const char *name, char out[128])
{
	char pattern[64];
	const char *at;

	snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
	at = json ? strstr(json, pattern) : NULL;
	snprintf(out, 128, "%.*s", at ? (int)strcspn(at + strlen(pattern), "\"") : 0,
		 at ? at + strlen(pattern) : "");
	return out;
}

static int give(struct uar *u, const char *command, const char *json, char **out)
{
	int status = uar_control(u, command, json, out);

	printf("%s: %d %s\n", command, status, *out ? *out : "(no memory)");
	return status == 200 ? 0 : 1;
}

/* Prints pages of events until the turn is over, or nothing comes for ten seconds. */
static int follow(struct uar *u, const char *session_id)
{
	unsigned long long last = 0;
	int status = 1;
	char *page;

	while (status == 1 && uar_events(u, session_id, last, 10000, &page) == 200) {
		const char *at = strstr(page, "\"last\":");
		unsigned long long next = at ? strtoull(at + strlen("\"last\":"), NULL, 10) : 0;

		printf("%s\n", page);
		if (strstr(page, "\"turn.completed\""))
			status = 0;
		else if (next == last)
			status = 2;
		last = next;
		uar_release(page);
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct uar_setting settings[] = { { "data", argc > 1 ? argv[1] : "state" },
						{ "log_level", "warn" },
						{ NULL, NULL } };
	char *answer = NULL, *problem, json[512], session_id[128];
	struct uar *u;
	int status;

	if (uar_open(&(struct uar_options){ .size = sizeof(struct uar_options),
					    .settings = settings },
		     &u, &problem)) {
		fprintf(stderr, "%s\n", problem ? problem : "no memory");
		uar_release(problem);
		return 1;
	}
	status = give(u, "create_task", "{\"objective\":\"sort the mail\"}", &answer);
	snprintf(json, sizeof json, "{\"agent_id\":\"echo\",\"message\":\"%s\"}",
		 argc > 2 ? argv[2] : "hello");
	if (!status) {
		uar_release(answer);
		status = give(u, "submit_turn", json, &answer);
	}
	if (!status)
		status = follow(u, string_member(answer, "session_id", session_id));
	uar_release(answer);
	uar_close(u);
	return status;
}
