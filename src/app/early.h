/* early.h - signals that come before a server has a loop to hear them. */
#ifndef UAR_APP_EARLY_H
#define UAR_APP_EARLY_H

/* From now on SIGTERM, SIGINT and SIGHUP are kept. A second one that ends ends at once: a
 * start may take long, and Ctrl-C twice means it. */
void uar_early_keep(void);
/* What was kept comes now: to the handlers that are there meanwhile. */
void uar_early_deliver(void);

#endif
