/* sha256.c - libcrypto's one-shot digests as hex. */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)bytes.p, bytes.n, digest);
	uar_hex(digest, sizeof digest, out);
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
