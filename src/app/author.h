/* author.h - for those who write plugins: a new folder, and whether one is right. */
#ifndef UAR_APP_AUTHOR_H
#define UAR_APP_AUTHOR_H

#include "app/cli.h"

/* A file of a new plugin; it is part of this program. */
struct uar_author_file {
	const char *path; /* in the plugin's folder */
	uar_str text;	  /* with @NAME@ and @COMMAND@ still in it */
};

/* The files of the language one after the other, from *at on; false: no more. */
bool uar_author_next(const char *lang, size_t *at, struct uar_author_file *out);
/* The command as JSON; NULL: there is no such language. */
const char *uar_author_command(const char *lang);

/* `uar plugin check`: an exit status. `entry` NULL: executes none. */
int uar_author_check(struct uar_cli *cli, const char *folder, const char *entry);

#endif
