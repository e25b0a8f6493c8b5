/* beside.h - what else may happen while a client waits for its server: a line is
 * typed on the terminal, a signal comes. */
#ifndef UAR_APP_BESIDE_H
#define UAR_APP_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

enum uar_beside_fd { UAR_BESIDE_SIGNAL, UAR_BESIDE_TERMINAL, UAR_BESIDE_COUNT };

struct uar_beside {
	int fd[UAR_BESIDE_COUNT]; /* -1: not looked at */
	/* Readable, or at its end; it may wait itself. false: wait no longer. */
	bool (*ready)(void *ctx, enum uar_beside_fd which);
	void *ctx;
};

/* Waits for `fd` (-1: for the time alone), `ms` at most. 0: ready; ETIMEDOUT;
 * ECANCELED: `ready` said so; another errno. Without `b` only `fd` is looked at. */
int uar_beside_wait(const struct uar_beside *b, int fd, short events, int ms);

#endif
