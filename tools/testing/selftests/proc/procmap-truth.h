/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests that compare an ioctl with the text share: the processes that
 * are compared, and how often.
 */
#ifndef PROCMAP_TRUTH_TEST_H
#define PROCMAP_TRUTH_TEST_H

#include <dirent.h>
#include <malloc.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA		0x53564d41
#define PR_SET_VMA_ANON_NAME	0
#endif

/* Children of the test: known mappings, also on an empty system. */
#define NR_CHILDREN	3
#define NR_MAPPINGS	250

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/*
 * Processes that the test did not start may change while they are compared, and
 * even back again, so that their text is the same before and after. TRIES bounds
 * the attempts for one process, TRIES_THAT_DIFFER those of the second kind.
 */
#define TRIES			1000
#define TRIES_THAT_DIFFER	20

enum verdict { SAME, CHANGED, DIFFERENT, NO_MAPPINGS, REFUSED, VANISHED };

/**
 * struct subject - one process that is compared
 * @pid: its PID.
 * @fd: its maps file.
 * @maps: the text of maps.
 * @page_sizes: the page size of each line, from smaps.
 * @calls: ioctls that were compared.
 * @wrong: the first difference, or "".
 */
struct subject {
	pid_t pid;
	int fd;
	struct maps maps;
	uint64_t *page_sizes;
	size_t calls;
	char wrong[128];
};

/* Compare the ioctl with @subject->maps. Returns false and sets @wrong. */
typedef bool (*agrees_fn)(struct subject *subject, const void *arg);

/* Record the first difference. Returns false, for the caller to return. */
static inline bool differ(struct subject *subject, const char *what,
			  uint64_t addr, uint64_t flags)
{
	snprintf(subject->wrong, sizeof(subject->wrong),
		 "%s at %#jx, flags %#jx", what, (uintmax_t)addr,
		 (uintmax_t)flags);
	return false;
}

/* Read maps and smaps. Returns SAME if both show the same mappings. */
static inline enum verdict read_texts(struct subject *subject)
{
	struct maps smaps;
	int err;

	err = read_maps(subject->fd, &subject->maps);
	if (!err && !subject->maps.nr)
		return NO_MAPPINGS;
	if (!err)
		err = read_smaps(subject->pid, &smaps, &subject->page_sizes);
	if (err == -ESRCH || err == -ENOENT)
		return VANISHED;
	if (err) {
		differ(subject, strerror(-err), 0, 0);
		return DIFFERENT;
	}
	err = !same_text(&subject->maps, &smaps);
	free_maps(&smaps);
	return err ? CHANGED : SAME;
}

/* What differs counts only if the text is the same before and after. */
static inline enum verdict compare_texts(struct subject *subject,
					 agrees_fn agrees, const void *arg)
{
	enum verdict verdict = read_texts(subject);
	struct maps after;
	bool agreed;

	if (verdict != SAME)
		return verdict;
	agreed = agrees(subject, arg);
	if (read_maps(subject->fd, &after))
		return VANISHED;
	verdict = !same_text(&subject->maps, &after) ? CHANGED :
		  agreed ? SAME : DIFFERENT;
	free_maps(&after);
	return verdict;
}

/* What has been compared. */
struct work {
	size_t processes;
	size_t mappings;
	size_t calls;
};

static inline enum verdict compare_once(pid_t pid, agrees_fn agrees,
					const void *arg, struct work *work,
					char wrong[128])
{
	struct subject subject = { .pid = pid, .fd = open_maps(pid) };
	enum verdict verdict;

	if (subject.fd == -EACCES || subject.fd == -EPERM)
		return REFUSED;
	if (subject.fd < 0)
		return VANISHED;

	verdict = compare_texts(&subject, agrees, arg);
	if (verdict == SAME) {
		work->processes++;
		work->mappings += subject.maps.nr;
		work->calls += subject.calls;
	}
	memcpy(wrong, subject.wrong, sizeof(subject.wrong));
	free_maps(&subject.maps);
	free(subject.page_sizes);
	close(subject.fd);
	return verdict;
}

/* Compare a process that may change, until it does not. */
static inline enum verdict compare_retrying(pid_t pid, agrees_fn agrees,
					    const void *arg, struct work *work,
					    char wrong[128])
{
	unsigned int i, differed = 0;
	enum verdict verdict = CHANGED;

	for (i = 0; i < TRIES && differed < TRIES_THAT_DIFFER; i++) {
		verdict = compare_once(pid, agrees, arg, work, wrong);
		if (verdict == DIFFERENT)
			differed++;
		else if (verdict != CHANGED)
			break;
	}
	return verdict;
}

/*
 * Map files and memory with all permissions, with and without gaps, so that
 * neighbours are of different kinds.
 */
static inline bool map_scene(void)
{
	const int plain = memfd_create("a\nfile", MFD_CLOEXEC);
	const int elf = memfd_create("program", MFD_CLOEXEC);
	uintptr_t addr = SCENE_START;
	unsigned int i;

	if (!write_elf(elf, (const uint8_t *)"the ID of a program."))
		return false;
	for (i = 0; i < NR_MAPPINGS; i++) {
		/* An odd factor, so that each bit changes often. */
		const unsigned int kind = i * 11;
		const int prot = (kind & 1 ? PROT_READ : 0) |
				 (kind & 2 ? PROT_WRITE : 0) |
				 (kind & 4 ? PROT_EXEC : 0);
		const int flags = (kind & 8 ? MAP_SHARED : MAP_PRIVATE) |
				  (kind & 16 ? MAP_ANONYMOUS : 0);
		const int fd = kind & 32 ? elf : plain;
		const size_t size = (1 + i % 3) * page_size();

		if (mmap((void *)addr, size, prot, flags | MAP_FIXED_NOREPLACE,
			 flags & MAP_ANONYMOUS ? -1 : fd,
			 flags & MAP_ANONYMOUS ? 0 : i % 7 * page_size()) !=
		    (void *)addr)
			return false;
		/* Fails without CONFIG_ANON_VMA_NAME: no name, then. */
		if (i % 9 == 0)
			prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, size,
			      "a name of its own");
		addr += size + (i % 4 ? 0 : page_size());
	}
	return true;
}

/* A process with that scene, which does not change any more. */
static inline int be_still(int control, void *arg)
{
	(void)arg;
	if (!map_scene())
		return 1;
	notify(control);
	await(control);
	return 0;
}

static inline void start_still_children(struct __test_metadata *const _metadata,
					struct child *children)
{
	unsigned int i;

	/* This process is compared as well: its heap must come to rest. */
	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	for (i = 0; i < NR_CHILDREN; i++) {
		ASSERT_TRUE(start_child(&children[i], be_still, NULL));
		ASSERT_TRUE(await(children[i].control));
	}
}

/*
 * The test's own children do not change, so the first comparison must find no
 * difference. Only processes that others run are tried again.
 */
static inline void compare_all_processes(struct __test_metadata *const _metadata,
					 const struct child *children,
					 agrees_fn agrees, const void *arg)
{
	char wrong[128] = "";
	struct work work = {};
	struct dirent *entry;
	size_t own = 0;
	DIR *proc = opendir("/proc");

	ASSERT_TRUE(!!proc);
	while ((entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		const size_t before = work.mappings;
		enum verdict verdict;

		if (pid <= 0)
			continue;
		if (is_child(children, NR_CHILDREN, pid)) {
			verdict = compare_once(pid, agrees, arg, &work, wrong);
			EXPECT_EQ(SAME, verdict) {
				TH_LOG("own child %d: %s", pid, wrong);
			}
			EXPECT_LE((size_t)NR_MAPPINGS, work.mappings - before);
			own++;
			continue;
		}
		verdict = compare_retrying(pid, agrees, arg, &work, wrong);
		EXPECT_NE(CHANGED, verdict) {
			TH_LOG("process %d does not hold still", pid);
		}
		ASSERT_NE(DIFFERENT, verdict) {
			TH_LOG("process %d: %s", pid, wrong);
		}
	}
	closedir(proc);
	EXPECT_EQ((size_t)NR_CHILDREN, own);
	/* This process and its parent, the harness, at least. */
	EXPECT_LE((size_t)NR_CHILDREN + 2, work.processes);
	TH_LOG("%zu processes, %zu mappings, %zu calls", work.processes,
	       work.mappings, work.calls);
}

#endif /* PROCMAP_TRUTH_TEST_H */
