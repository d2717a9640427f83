// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * A cache of handles, for lookups in many processes in any order.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

/* All are looked at to find one. */
#define NR_HANDLES_MAX	4096

/**
 * struct slot - a handle in the cache
 * @pid: the process.
 * @procmap: the handle; NULL if the slot is empty.
 * @used: when the handle was used last, as a number of &procmap_cache.used.
 */
struct slot {
	pid_t pid;
	struct procmap *procmap;
	uint64_t used;
};

/**
 * struct procmap_cache - see procmap.h
 * @method: the method of new handles.
 * @used: how often a handle was used.
 * @nr: number of slots.
 * @slots: the slots.
 */
struct procmap_cache {
	enum procmap_method method;
	uint64_t used;
	unsigned int nr;
	struct slot slots[];
};

int procmap_cache_new(unsigned int nr_handles, enum procmap_method method,
		      struct procmap_cache **cache)
{
	struct procmap_cache *new;

	if (!nr_handles || nr_handles > NR_HANDLES_MAX || !is_method(method) ||
	    !cache)
		return -EINVAL;
	new = calloc(1, sizeof(*new) + nr_handles * sizeof(*new->slots));
	if (!new)
		return -ENOMEM;
	new->method = method;
	new->nr = nr_handles;
	*cache = new;
	return 0;
}

static void empty(struct slot *slot)
{
	procmap_close(slot->procmap);
	slot->procmap = NULL;
	slot->pid = 0;
	slot->used = 0;
}

/* The slot of the process; or else an empty one, or the one not used for longest. */
static struct slot *slot_of(struct procmap_cache *cache, pid_t pid)
{
	struct slot *oldest = cache->slots;
	unsigned int i;

	for (i = 0; i < cache->nr; i++) {
		struct slot *const slot = &cache->slots[i];

		if (slot->pid == pid)
			return slot;
		if (slot->used < oldest->used)
			oldest = slot;
	}
	return oldest;
}

static struct slot *oldest_of(struct procmap_cache *cache)
{
	struct slot *oldest = NULL;
	unsigned int i;

	for (i = 0; i < cache->nr; i++) {
		struct slot *const slot = &cache->slots[i];

		if (slot->procmap && (!oldest || slot->used < oldest->used))
			oldest = slot;
	}
	return oldest;
}

/* If the descriptors do not suffice, close the handles not used for longest. */
static int open_slot(struct procmap_cache *cache, struct slot *slot, pid_t pid)
{
	struct slot *oldest;
	int err;

	empty(slot);
	for (;;) {
		err = procmap_open_pid(pid, cache->method, &slot->procmap);
		oldest = err == -EMFILE || err == -ENFILE ? oldest_of(cache) : NULL;
		if (!oldest)
			return err == -ENOENT ? -ESRCH : err;
		empty(oldest);
	}
}

static int get(struct procmap_cache *cache, pid_t pid, struct slot **used)
{
	struct slot *const slot = slot_of(cache, pid);
	int err;

	if (slot->pid != pid) {
		err = open_slot(cache, slot, pid);
		if (err)
			return err;
		slot->pid = pid;
	}
	slot->used = ++cache->used;
	*used = slot;
	return 0;
}

int procmap_cache_get(struct procmap_cache *cache, pid_t pid,
		      struct procmap **procmap)
{
	struct slot *slot;
	int err;

	if (!cache || pid <= 0 || !procmap)
		return -EINVAL;
	err = get(cache, pid, &slot);
	if (!err)
		*procmap = slot->procmap;
	return err;
}

void procmap_cache_forget(struct procmap_cache *cache, pid_t pid)
{
	struct slot *slot;

	if (!cache || pid <= 0)
		return;
	slot = slot_of(cache, pid);
	if (slot->pid == pid)
		empty(slot);
}

/* It may execute a program, or exit, again and again. */
#define TRIES	3

/* Does this error mean that the handle is not on what the process runs? */
static bool is_outdated(struct slot *slot, int err)
{
	if (err != -ESTALE && err != -ESRCH)
		return false;
	empty(slot);
	return true;
}

int procmap_cache_find(struct procmap_cache *cache, pid_t pid, uint64_t addr,
		       unsigned int flags,
		       const struct procmap_mapping **mapping)
{
	unsigned int tries;
	struct slot *slot;
	int err;

	if (!cache || pid <= 0)
		return -EINVAL;
	for (tries = 0; tries < TRIES; tries++) {
		err = get(cache, pid, &slot);
		if (err)
			return err;
		err = procmap_find(slot->procmap, addr, flags, mapping);
		if (!is_outdated(slot, err))
			return err;
	}
	return -ESRCH;
}

int procmap_cache_resolve(struct procmap_cache *cache, pid_t pid,
			  const uint64_t *addrs, size_t nr_addrs,
			  unsigned int flags,
			  const struct procmap_resolved **resolved)
{
	unsigned int tries;
	struct slot *slot;
	int err;

	if (!cache || pid <= 0)
		return -EINVAL;
	for (tries = 0; tries < TRIES; tries++) {
		err = get(cache, pid, &slot);
		if (err)
			return err;
		err = procmap_resolve(slot->procmap, addrs, nr_addrs, flags,
				      resolved);
		if (!is_outdated(slot, err))
			return err;
	}
	return -ESRCH;
}

void procmap_cache_free(struct procmap_cache *cache)
{
	unsigned int i;

	if (!cache)
		return;
	for (i = 0; i < cache->nr; i++)
		procmap_close(cache->slots[i].procmap);
	free(cache);
}
