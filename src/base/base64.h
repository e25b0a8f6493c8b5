/* base64.h - RFC 4648 base64 with padding, strict: one text for one value. */
#ifndef UAR_BASE_BASE64_H
#define UAR_BASE_BASE64_H

#include "base/arena.h"
#include "base/buf.h"

void uar_base64_encode(struct uar_buf *out, uar_str bytes);
/* Into the arena. UAR_EINVALID for anything but what the encoder writes. */
UAR_MUST_CHECK uar_err uar_base64_decode(struct uar_arena *a, uar_str text, uar_str *out);

#endif
