/* sha256.c - libcrypto's digests as hex. */
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

bool uar_sha256_init(struct uar_sha256 *h)
{
	h->state = EVP_MD_CTX_new();
	return h->state && EVP_DigestInit_ex(h->state, EVP_sha256(), NULL);
}

bool uar_sha256_add(struct uar_sha256 *h, uar_str bytes)
{
	return !bytes.n || EVP_DigestUpdate(h->state, bytes.p, bytes.n);
}

bool uar_sha256_end(struct uar_sha256 *h, char out[UAR_SHA256_TEXT + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	if (!EVP_DigestFinal_ex(h->state, digest, NULL))
		return false;
	uar_hex(digest, sizeof digest, out);
	return true;
}

void uar_sha256_fini(struct uar_sha256 *h)
{
	EVP_MD_CTX_free(h->state);
	h->state = NULL;
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
