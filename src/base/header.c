/* header.c - names of HTTP headers. */
#include "base/header.h"

bool uar_header_name_valid(uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("!#$%&'*+-.^_`|~", c))))
			return false;
	}
	return s.n > 0;
}

bool uar_header_is_of_connection(uar_str name)
{
	static const char *const names[] = {
		"host",	      "content-length", "transfer-encoding",
		"connection", "keep-alive",	"proxy-connection",
		"te",	      "trailer",	"upgrade",
		"expect",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_eq_nocase(name, uar_str_c(names[i])))
			return true;
	return false;
}
