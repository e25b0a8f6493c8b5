/* datadir.h - the files of the data directory that server and clients share.
 *
 *	seal.key     the key of secrets that runs still need, one line of hex digits
 *	token        the generated bearer token, one line, readable by the owner alone
 *	server.json  where the running server listens: {"url","pid","version","started_at"};
 *	             one that leaves by itself stays there, with an empty url and what
 *	             app/again.h keeps
 *	port         the port of the last server that the system chose one for
 *	mcp-*.sealed tokens of MCP servers, sealed
 *	reserve      space for a start on a full disk
 *
 * Files are replaced whole (written beside, then renamed), so that a reader
 * never sees half of one. */
#ifndef UAR_APP_DATADIR_H
#define UAR_APP_DATADIR_H

#include "app/config.h"
#include "base/seal.h"
#include "base/clock.h"
#include "base/rand.h"

/* Makes the directory and its parents; the directory itself for the owner alone. */
UAR_MUST_CHECK uar_err uar_datadir_create(const char *data, struct uar_error *error);
/* Is everything that a start opens a regular file, or not there? A FIFO would keep it waiting. */
UAR_MUST_CHECK uar_err uar_datadir_regular(const char *data, struct uar_error *error);
/* Removes what starts that were killed have left half written. For who holds the lock. */
void uar_datadir_sweep(const char *data);

/* UAR_ECONFIG: whoever sees `dir` would see files of the data directory. It may be
 * neither that directory nor above it, and inside it only `files`. Links are followed. */
UAR_MUST_CHECK uar_err uar_datadir_apart(const char *data, const char *dir,
					 struct uar_error *error);

/* The key under which secrets that runs still need are kept; made when there is none. */
UAR_MUST_CHECK uar_err uar_datadir_seal(const char *data, const struct uar_rand *rand,
					struct uar_seal_key *out, struct uar_error *error);
/* Appends the token: the configured one, else that of the token file. When there
 * is none, `rand` makes one and keeps it; with `rand` NULL it is UAR_ENOTFOUND.
 * A token file that others may read is refused. */
UAR_MUST_CHECK uar_err uar_datadir_token(const struct uar_config *c, const struct uar_rand *rand,
					 struct uar_buf *out, struct uar_error *error);

#define UAR_DATADIR_PORT "port"

/* A small file of that name, replaced whole, for the owner alone; .p NULL: it is removed. */
UAR_MUST_CHECK uar_err uar_datadir_keep(const char *data, const char *name, uar_str text,
					struct uar_error *error);
/* Appends such a file. UAR_ENOTFOUND. */
UAR_MUST_CHECK uar_err uar_datadir_kept(const char *data, const char *name, struct uar_buf *out,
					struct uar_error *error);

struct uar_server_info {
	char url[512]; /* as uar_api_init takes it */
	int64_t pid;
	bool passing;  /* it leaves when it has nothing to do; whoever needs it starts it again */
	uar_str again; /* JSON of uar_again_put, to be written; never read here */
};
/* `clock` dates the file. */
UAR_MUST_CHECK uar_err uar_datadir_announce(const char *data, const struct uar_server_info *info,
					    const struct uar_clock *clock, struct uar_error *error);
void uar_datadir_retract(const char *data, const struct uar_server_info *info);
/* UAR_ENOTFOUND: no server has announced itself, or the last one left in order. */
UAR_MUST_CHECK uar_err uar_datadir_server(const char *data, struct uar_server_info *out,
					  struct uar_error *error);
/* Appends the file as it is. */
UAR_MUST_CHECK uar_err uar_datadir_server_text(const char *data, struct uar_buf *out,
					       struct uar_error *error);
/* Was the last server one that leaves by itself, also when it is gone or has died? */
bool uar_datadir_passing(const char *data);

/* Some space is kept in a file, so that a server can start on a full disk and what is
 * stored can be read: that start gives it back. A disk that has none to keep is fine. */
void uar_datadir_reserve(const char *data);
bool uar_datadir_release(const char *data); /* false: none was kept */
/* Less is free than a start may need. A file system that does not count is never full. */
bool uar_datadir_full(const char *data);

/* Users other than its owner may write into the directory: whatever is put there is read as
 * configuration, agent or plugin. */
bool uar_datadir_open_to_others(const char *data);

/* It is there and nobody can serve it, a backup for instance. */
bool uar_datadir_read_only(const char *data);
/* Looks at the directory without changing anything. Lines of `problems` make it
 * fail, lines of `notes` are advice. */
UAR_MUST_CHECK uar_err uar_datadir_check(const struct uar_config *c, struct uar_buf *notes,
					 struct uar_buf *problems);

#endif
