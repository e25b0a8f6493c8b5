/* sha256.c - libcrypto's digests as hex. */
/* The calls of version 1.1: those that came after them allocate for each digest, and a name of
 * content that may be missing would be an error path in everybody who needs one. */
#define OPENSSL_API_COMPAT 10100
#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct uar_sha256), "libcrypto's state has its place");

static SHA256_CTX *state_of(struct uar_sha256 *h)
{
	return (SHA256_CTX *)(void *)h->state;
}

void uar_sha256_init(struct uar_sha256 *h)
{
	SHA256_Init(state_of(h));
}

void uar_sha256_add(struct uar_sha256 *h, uar_str bytes)
{
	if (bytes.n)
		SHA256_Update(state_of(h), bytes.p, bytes.n);
}

void uar_sha256_end(struct uar_sha256 *h, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256_Final(digest, state_of(h));
	uar_hex(digest, sizeof digest, out);
}

void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	struct uar_sha256 h;

	uar_sha256_init(&h);
	uar_sha256_add(&h, bytes);
	uar_sha256_end(&h, out);
}

bool uar_hmac_sha256_hex(uar_str key, uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	unsigned n = sizeof digest;

	if (!HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)bytes.p, bytes.n, digest,
		  &n))
		return false;
	uar_hex(digest, sizeof digest, out);
	return true;
}
