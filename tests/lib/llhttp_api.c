/* llhttp_api.c - the hand-written half of llhttp; see llhttp_all.h. */
#include "llhttp_all.h"
#ifdef HAVE_LLHTTP
#include "llhttp_api.h"
#endif
