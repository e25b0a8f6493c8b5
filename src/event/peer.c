/* peer.c - names of other runtimes. */
#include "event/limits.h"
#include "event/peer.h"

bool uar_peer_name_valid(uar_str s)
{
	static const uar_str letters = UAR_STR("abcdefghijklmnopqrstuvwxyz0123456789_-");

	for (size_t i = 0; i < s.n; i++)
		if (uar_str_find(letters, s.p[i]) == letters.n)
			return false;
	return s.n > 0 && s.n <= UAR_LIMIT_A2A_PEER;
}
