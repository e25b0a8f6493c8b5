/* sha256.h - the name of content: fingerprints, prompts, blobs. */
#ifndef UAR_BASE_SHA256_H
#define UAR_BASE_SHA256_H

#include "base/str.h"

enum { UAR_SHA256_TEXT = 64 };
/* Lower-case hex and a NUL. */
void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

/* The same of bytes that come in pieces. False: libcrypto could not. */
struct uar_sha256 {
	void *state; /* NULL: not begun */
};
bool uar_sha256_init(struct uar_sha256 *h);
bool uar_sha256_add(struct uar_sha256 *h, uar_str bytes);
bool uar_sha256_end(struct uar_sha256 *h, char out[UAR_SHA256_TEXT + 1]); /* once */
void uar_sha256_fini(struct uar_sha256 *h);

/* HMAC-SHA256 likewise. False: libcrypto could not. */
bool uar_hmac_sha256_hex(uar_str key, uar_str bytes, char out[UAR_SHA256_TEXT + 1]);

#endif
