/* llhttp_machine.c - the generated half of llhttp; see llhttp_all.h. */
#include "llhttp_all.h"
#ifdef HAVE_LLHTTP
#include "llhttp_machine.h"
#endif
