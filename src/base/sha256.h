/* sha256.h - the name of content: fingerprints, prompts, blobs. */
#ifndef UAR_BASE_SHA256_H
#define UAR_BASE_SHA256_H

#include "base/str.h"

enum { UAR_SHA256_TEXT = 64 };
/* Lower-case hex and a NUL. Takes no memory and cannot fail. */
void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

/* The same of bytes that come in pieces. */
struct uar_sha256 {
	uint32_t state[28]; /* libcrypto's */
};
void uar_sha256_init(struct uar_sha256 *h);
void uar_sha256_add(struct uar_sha256 *h, uar_str bytes);
void uar_sha256_end(struct uar_sha256 *h, char out[UAR_SHA256_TEXT + 1]); /* once */

/* HMAC-SHA256 likewise. False: libcrypto could not. */
UAR_MUST_CHECK bool uar_hmac_sha256_hex(uar_str key, uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

#endif
