/* sha256.c - libcrypto's one-shot digests as hex. */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

static void put_hex(const unsigned char digest[SHA256_DIGEST_LENGTH], char out[UAR_SHA256_TEXT + 1])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_DIGEST_LENGTH; i++) {
		out[2 * i] = hex[digest[i] >> 4];
		out[2 * i + 1] = hex[digest[i] & 15];
	}
	out[UAR_SHA256_TEXT] = 0;
}

void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)bytes.p, bytes.n, digest);
	put_hex(digest, out);
}

bool uar_hmac_sha256_hex(uar_str key, uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	unsigned n = sizeof digest;

	if (!HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)bytes.p, bytes.n, digest,
		  &n))
		return false;
	put_hex(digest, out);
	return true;
}
