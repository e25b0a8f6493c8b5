/* sha256.c - libcrypto's one-shot digest as hex. */
#include "base/sha256.h"

#include <openssl/sha.h>

void uar_sha256_hex(uar_str bytes, char out[UAR_SHA256_TEXT + 1])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)bytes.p, bytes.n, digest);
	for (size_t i = 0; i < sizeof digest; i++) {
		out[2 * i] = hex[digest[i] >> 4];
		out[2 * i + 1] = hex[digest[i] & 15];
	}
	out[UAR_SHA256_TEXT] = 0;
}
