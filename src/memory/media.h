/* media.h - what a file is, by its name. Pure. */
#ifndef UAR_MEMORY_MEDIA_H
#define UAR_MEMORY_MEDIA_H

#include "base/str.h"

/* "text/markdown" for "a.md"; "text/plain" where the name does not say. */
uar_str uar_media_type_of(uar_str path);
/* Is it one whose words can be read? */
bool uar_media_is_read(uar_str path);

#endif
