/* header.h - names of HTTP headers. */
#ifndef UAR_BASE_HEADER_H
#define UAR_BASE_HEADER_H

#include "base/str.h"

#define UAR_HEADER_OF_CONNECTION                                                                   \
	"Host, Content-Length, Transfer-Encoding, Connection and their like are set by the "       \
	"runtime: leave them out"

/* A token of RFC 9110. */
bool uar_header_name_valid(uar_str name);
/* It belongs to the connection: a request that says otherwise can be read as two, and what follows
 * on the same connection may be another user's. */
bool uar_header_is_of_connection(uar_str name);

#endif
