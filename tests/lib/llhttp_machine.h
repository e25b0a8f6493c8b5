/* llhttp_machine.h - declares its callbacks unlike llhttp's own api.c, so it is a
 * translation unit of its own. */
#pragma GCC system_header
#include "/usr/share/llhttp/llhttp.c"
