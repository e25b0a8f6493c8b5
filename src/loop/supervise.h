/* supervise.h - the little process between UAR and a child: nothing outlives it.
 *
 * It is the reaper of everything the child starts, also of what left the
 * child's session, and ends all of it when the child exits, when it is told to
 * (SIGTERM) and when UAR itself is gone, however that came about. */
#ifndef UAR_LOOP_SUPERVISE_H
#define UAR_LOOP_SUPERVISE_H

/* argv[1] that makes a program a supervisor; then UAR's pid, then the command. */
#define UAR_SUPERVISE_WORD "__supervise"

/* Does not return when argv asks for it. main() calls this before anything else. */
void uar_supervise(int argc, char **argv);

#endif
