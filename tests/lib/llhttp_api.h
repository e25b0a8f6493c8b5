/* llhttp_api.h - the hand-written half of llhttp, foreign code like the other. */
#pragma GCC system_header
#include "/usr/share/llhttp/api.c"
#include "/usr/share/llhttp/http.c"
