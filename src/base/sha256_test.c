/* sha256_test.c - the name of content, also when there is no memory. */
#include "test.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "base/sha256.h"

static bool refuses;

static void *some(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return refuses ? NULL : malloc(n);
}

static void *more(void *p, size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return refuses ? NULL : realloc(p, n);
}

static void gone(void *p, const char *file, int line)
{
	(void)file, (void)line;
	free(p);
}

/* Published values (FIPS 180-2 and the hash of nothing). */
TEST(a_hash_is_right_also_without_memory, "")
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};

	REQUIRE(CRYPTO_set_mem_functions(some, more, gone)); /* before libcrypto takes any */
	refuses = true;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char hex[UAR_SHA256_TEXT + 1] = "";

		uar_sha256_hex(uar_str_c(cases[i].in), hex);
		CHECK_STR(uar_str_c(hex), cases[i].want);
	}
	refuses = false;
}
