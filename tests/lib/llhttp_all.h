/* llhttp_all.h - llhttp in its strict mode, compiled from where Debian's
 * node-llhttp installs its sources; HAVE_LLHTTP when they are there. Foreign
 * code: our warnings are not its concern. */
#pragma GCC system_header
#if __has_include("/usr/share/llhttp/llhttp.c") &&                                                 \
		  __has_include("/usr/share/include/llhttp/llhttp.h")
#define HAVE_LLHTTP	   1
#define LLHTTP_STRICT_MODE 1
#include "llhttp.h"
#endif
