/* sha256.h - the name of content: fingerprints, prompts, blobs. */
#ifndef UAR_BASE_SHA256_H
#define UAR_BASE_SHA256_H

#include "base/str.h"

enum { UAR_SHA256_TEXT = 64 };
/* Lower-case hex and a NUL. */
void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

/* HMAC-SHA256 likewise. False: libcrypto could not. */
bool uar_hmac_sha256_hex(uar_str key, uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

#endif
