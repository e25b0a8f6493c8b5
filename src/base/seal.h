/* seal.h - values that must be kept and not be readable: AES-256-GCM under a key of the
 * data directory.
 *
 * What is sealed names what it belongs to: opened for anything else it is refused. */
#ifndef UAR_BASE_SEAL_H
#define UAR_BASE_SEAL_H

#include "base/buf.h"
#include "base/rand.h"

struct uar_seal_key {
	unsigned char bytes[32];
};

/* Appends the sealed bytes to `out`. `about` names what they belong to. */
UAR_MUST_CHECK uar_err uar_seal(const struct uar_seal_key *key, const struct uar_rand *rand,
				uar_str plain, uar_str about, struct uar_buf *out);
/* UAR_ECORRUPT: it was sealed under another key, for something else, or was changed. */
UAR_MUST_CHECK uar_err uar_unseal(const struct uar_seal_key *key, uar_str sealed, uar_str about,
				  struct uar_buf *out);

#endif
