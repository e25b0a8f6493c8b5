/* seal.c - a mark, a nonce, the encrypted bytes and their tag, in this order. */
#include "base/seal.h"

#include <openssl/evp.h>

enum { MARK = 8, NONCE = 12, TAG = 16, PIECE = 1 << 16 };
static const char mark[MARK + 1] = "UARSEAL1";

/* `more` bytes at the end of the buffer; NULL: there is no room for them. */
static unsigned char *extend(struct uar_buf *out, size_t more)
{
	static const char zeros[PIECE];
	size_t from = out->n;

	for (size_t left = more; left;) {
		size_t n = left < PIECE ? left : PIECE;

		uar_buf_add(out, zeros, n);
		left -= n;
	}
	return out->err ? NULL : (unsigned char *)out->p + from;
}

static bool encrypt(EVP_CIPHER_CTX *c, const struct uar_seal_key *key, uar_str plain, uar_str about,
		    unsigned char *at)
{
	unsigned char *nonce = at + MARK, *text = nonce + NONCE;
	int n = 0;

	return EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	       EVP_EncryptUpdate(c, NULL, &n, (const unsigned char *)about.p, (int)about.n) == 1 &&
	       EVP_EncryptUpdate(c, text, &n, (const unsigned char *)plain.p, (int)plain.n) == 1 &&
	       EVP_EncryptFinal_ex(c, text + n, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, text + plain.n) == 1;
}

uar_err uar_seal(const struct uar_seal_key *key, const struct uar_rand *rand, uar_str plain,
		 uar_str about, struct uar_buf *out)
{
	unsigned char *at = plain.n < INT32_MAX ? extend(out, MARK + NONCE + plain.n + TAG) : NULL;
	EVP_CIPHER_CTX *c = at ? EVP_CIPHER_CTX_new() : NULL;
	bool ok = false;

	if (!c)
		return out->err ? out->err : plain.n < INT32_MAX ? UAR_ENOMEM : UAR_ETOOBIG;
	memcpy(at, mark, MARK);
	rand->fill(rand->ctx, at + MARK, NONCE);
	ok = encrypt(c, key, plain, about, at);
	EVP_CIPHER_CTX_free(c);
	return ok ? UAR_OK : UAR_EINTERNAL;
}

static bool decrypt(EVP_CIPHER_CTX *c, const struct uar_seal_key *key, uar_str sealed,
		    uar_str about, unsigned char *out)
{
	const unsigned char *nonce = (const unsigned char *)sealed.p + MARK;
	size_t n = sealed.n - MARK - NONCE - TAG;
	unsigned char tag[TAG];
	int done = 0;

	memcpy(tag, nonce + NONCE + n, TAG);
	return EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	       EVP_DecryptUpdate(c, NULL, &done, (const unsigned char *)about.p, (int)about.n) ==
		       1 &&
	       EVP_DecryptUpdate(c, out, &done, nonce + NONCE, (int)n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
	       EVP_DecryptFinal_ex(c, out + done, &done) == 1;
}

uar_err uar_unseal(const struct uar_seal_key *key, uar_str sealed, uar_str about,
		   struct uar_buf *out)
{
	size_t before = out->n;
	unsigned char *at;
	EVP_CIPHER_CTX *c;
	bool ok;

	if (sealed.n < MARK + NONCE + TAG || sealed.n > INT32_MAX ||
	    memcmp(sealed.p, mark, MARK) != 0)
		return UAR_ECORRUPT;
	at = extend(out, sealed.n - MARK - NONCE - TAG + 1); /* never empty */
	c = at ? EVP_CIPHER_CTX_new() : NULL;
	if (!c)
		return UAR_ENOMEM;
	ok = decrypt(c, key, sealed, about, at);
	EVP_CIPHER_CTX_free(c);
	out->n = ok ? out->n - 1 : before;
	return ok ? UAR_OK : UAR_ECORRUPT;
}
