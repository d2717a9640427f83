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

/* The slot of the process, or NULL. */
static struct slot *slot_of(struct procmap_cache *cache, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < cache->nr; i++)
		if (cache->slots[i].pid == pid)
			return &cache->slots[i];
	return NULL;
}

/*
 * The slot that was not used for longest, of those that have a handle if it @is_open; else
 * an empty one is the oldest.
 */
static struct slot *oldest_of(struct procmap_cache *cache, bool is_open)
{
	struct slot *oldest = NULL;
	unsigned int i;

	for (i = 0; i < cache->nr; i++) {
		struct slot *const slot = &cache->slots[i];

		if (is_open && !slot->procmap)
			continue;
		if (!oldest || slot->used < oldest->used)
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
		oldest = err == -EMFILE || err == -ENFILE ?
			 oldest_of(cache, true) : NULL;
		if (!oldest)
			break;
		empty(oldest);
	}
	if (!err)
		slot->pid = pid;
	return err == -ENOENT ? -ESRCH : err;
}

static int get(struct procmap_cache *cache, pid_t pid, struct slot **used)
{
	struct slot *slot = slot_of(cache, pid);
	int err;

	if (!slot) {
		slot = oldest_of(cache, false);
		err = open_slot(cache, slot, pid);
		if (err)
			return err;
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
	if (slot)
		empty(slot);
}

/* It may execute a program, or exit, again and again. */
#define TRIES	3

/**
 * struct attempts - attempts at a lookup in a process
 * @nr: the number of attempts so far.
 * @slot: the handle to use.
 * @err: what the last attempt returned, and in the end the result.
 */
struct attempts {
	unsigned int nr;
	struct slot *slot;
	int err;
};

/*
 * Get a handle for the next attempt. Returns false if there is none to be made: the last
 * one was on what the process runs, or no handle can be had.
 */
static bool try_again(struct procmap_cache *cache, pid_t pid,
		      struct attempts *attempts)
{
	if (attempts->nr) {
		if (attempts->err != -ESTALE && attempts->err != -ESRCH)
			return false;
		empty(attempts->slot);
	}
	if (!cache || pid <= 0)
		attempts->err = -EINVAL;
	else if (attempts->nr == TRIES)
		attempts->err = -ESRCH;
	else
		attempts->err = get(cache, pid, &attempts->slot);
	attempts->nr++;
	return !attempts->err;
}

int procmap_cache_find(struct procmap_cache *cache, pid_t pid, uint64_t addr,
		       unsigned int flags,
		       const struct procmap_mapping **mapping)
{
	struct attempts attempts = { .nr = 0 };

	while (try_again(cache, pid, &attempts))
		attempts.err = procmap_find(attempts.slot->procmap, addr, flags,
					    mapping);
	return attempts.err;
}

int procmap_cache_resolve(struct procmap_cache *cache, pid_t pid,
			  const uint64_t *addrs, size_t nr_addrs,
			  unsigned int flags,
			  const struct procmap_resolved **resolved)
{
	struct attempts attempts = { .nr = 0 };

	while (try_again(cache, pid, &attempts))
		attempts.err = procmap_resolve(attempts.slot->procmap, addrs,
					       nr_addrs, flags, resolved);
	return attempts.err;
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
