/* kept.c - what a sweep must not remove: blobs that were put while it goes on.
 *
 * An event that is not in the log yet can only refer to a blob that was put in this life, so
 * these are remembered until the sweep has ended. */
#include "store/blob/files_int.h"

void bf_kept_init(struct bf_kept *k)
{
	pthread_mutex_init(&k->lock, NULL);
	uar_map_init(&k->map, 0x5357u);
}

void bf_kept_add(struct bf_kept *k, const char sha256[65])
{
	pthread_mutex_lock(&k->lock);
	if (k->on && !k->lost && uar_store_hash_add(&k->map, sha256))
		k->lost = true;
	pthread_mutex_unlock(&k->lock);
}

void bf_kept_fini(struct bf_kept *k)
{
	uar_store_hashes_fini(&k->map);
	pthread_mutex_destroy(&k->lock);
}

void bf_sweep_begin(struct uar_blobs *base)
{
	struct bf_kept *k = &bf_of(base)->kept;

	pthread_mutex_lock(&k->lock);
	k->on = true;
	pthread_mutex_unlock(&k->lock);
}

enum uar_blob_swept bf_sweep_one(struct uar_blobs *base, const char sha256[65])
{
	struct bf *b = bf_of(base);
	enum uar_blob_swept did = UAR_BLOB_STAYS;

	if (!bf_has(base, sha256))
		return UAR_BLOB_ABSENT;
	pthread_mutex_lock(&b->kept.lock);
	if (!b->kept.lost && !uar_map_get(&b->kept.map, uar_str_n(sha256, 64))) {
		bf_unlink(b->fd, sha256);
		did = UAR_BLOB_REMOVED;
	}
	pthread_mutex_unlock(&b->kept.lock);
	return did;
}

void bf_sweep_end(struct uar_blobs *base)
{
	struct bf_kept *k = &bf_of(base)->kept;

	pthread_mutex_lock(&k->lock);
	k->on = false;
	uar_store_hashes_fini(&k->map);
	uar_map_init(&k->map, 0x5357u);
	pthread_mutex_unlock(&k->lock);
}
