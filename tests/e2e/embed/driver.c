/* driver.c - gives the library what its standard input says and prints each answer.
 *
 *	usage: driver NAME=VALUE...
 *	control COMMAND JSON         -> STATUS ANSWER
 *	crowd N COMMAND JSON         -> the same from N threads at once, a line each
 *	events SESSION AFTER MS      -> STATUS ANSWER */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uar/uar.h>

enum { SETTINGS = 32, LINE = 1 << 20, CROWD = 16 };

struct order {
	struct uar *u;
	const char *command, *json;
	char *answer;
	int status;
};

static void print_answer(int status, char *answer)
{
	printf("%d %s\n", status, answer ? answer : "");
	fflush(stdout);
	uar_release(answer);
}

static void *give_order(void *ctx)
{
	struct order *o = ctx;

	o->status = uar_control(o->u, o->command, o->json, &o->answer);
	return NULL;
}

static void give_all(struct uar *u, int n, const char *command, const char *json)
{
	struct order orders[CROWD];
	pthread_t threads[CROWD];

	n = n < CROWD ? n : CROWD;
	for (int i = 0; i < n; i++) {
		orders[i] = (struct order){ .u = u, .command = command, .json = json };
		if (pthread_create(&threads[i], NULL, give_order, &orders[i]))
			abort();
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		print_answer(orders[i].status, orders[i].answer);
	}
}

static void obey_line(struct uar *u, char *line)
{
	char *rest = line, *verb = strsep(&rest, " "), *first = strsep(&rest, " ");
	char *answer = NULL;
	int status = 0;

	if (!first) {
		printf("0 a word is missing\n");
		return;
	}
	if (strcmp(verb, "crowd") == 0) {
		char *command = strsep(&rest, " ");

		give_all(u, (int)strtol(first, NULL, 10), command, rest);
		return;
	}
	if (strcmp(verb, "control") == 0) {
		status = uar_control(u, first, rest, &answer);
	} else {
		char *after = strsep(&rest, " ");

		status = uar_events(u, first, strtoull(after, NULL, 10),
				    (int)strtol(rest, NULL, 10), &answer);
	}
	print_answer(status, answer);
}

int main(int argc, char **argv)
{
	static char line[LINE];
	struct uar_setting settings[SETTINGS] = { { NULL, NULL } };
	char *problem = NULL;
	struct uar *u = NULL;
	int status;

	for (int i = 1; i < argc && i < SETTINGS; i++) {
		char *value = argv[i], *name = strsep(&value, "=");

		settings[i - 1] = (struct uar_setting){ name, value };
	}
	status = uar_open(
		&(struct uar_options){ .size = sizeof(struct uar_options), .settings = settings },
		&u, &problem);
	if (status) {
		printf("%d %s\n", status, problem ? problem : "");
		uar_release(problem);
		return status;
	}
	printf("0 open\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		obey_line(u, line);
	}
	uar_close(u);
	return 0;
}
