/* llhttp.h - lets the sources of Debian's node-llhttp find their own header. */
#if __has_include("/usr/share/include/llhttp/llhttp.h")
#include "/usr/share/include/llhttp/llhttp.h"
#endif
