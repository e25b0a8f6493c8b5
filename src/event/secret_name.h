/* secret_name.h - names of members, headers and variables whose values may not be recorded. */
#ifndef UAR_EVENT_SECRET_NAME_H
#define UAR_EVENT_SECRET_NAME_H

#include "base/str.h"

/* "password", "api_key", "clientSecret", ... */
bool uar_is_secret_name(uar_str name);

#endif
