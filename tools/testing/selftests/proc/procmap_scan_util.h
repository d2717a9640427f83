/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of PROCMAP_SCAN: scan, and compare the records with the text.
 */
#ifndef PROCMAP_SCAN_UTIL_H
#define PROCMAP_SCAN_UTIL_H

#include <linux/procmap_scan.h>

#include "procmap_util.h"

#define SCAN_PERMISSIONS	(PROCMAP_VMA_READABLE | PROCMAP_VMA_WRITABLE | \
				 PROCMAP_VMA_EXECUTABLE | PROCMAP_VMA_SHARED)
#define SCAN_FILTERS		(SCAN_PERMISSIONS | PROCMAP_VMA_FILE_BACKED)
#define SCAN_ALL		(PROCMAP_SCAN_NAMES | PROCMAP_SCAN_BUILD_IDS)

/* The end of a range that has all mappings. */
#define NO_END			(~0ull)

/* Skip all tests of a fixture, in its setup, on a kernel without the ioctl. */
#define SKIP_WITHOUT_SCAN() do { \
	if (call_ioctl(open_maps(0), PROCMAP_SCAN, NULL) == -ENOTTY) \
		SKIP_SETUP("this kernel has no PROCMAP_SCAN"); \
} while (0)

/* The array and the data buffer of a scan. */
struct scan_buffers {
	struct procmap_vma *vec;
	char *data;
	uint32_t vec_len;
	uint32_t data_size;
};

/* Run a scan. Returns the number of records or -errno. */
int procmap_scan(int fd, struct procmap_scan_arg *arg);
struct scan_buffers make_scan_buffers(uint32_t vec_len, uint32_t data_size);
/* Arguments without filters, and with both buffers. */
struct procmap_scan_arg scan_arg(const struct scan_buffers *buffers, uint64_t start,
				 uint64_t end, uint64_t want);

struct procmap_vma *record_at(const struct procmap_scan_arg *arg, size_t i);
/* Returns "" if there is no name. */
const char *name_of(const struct procmap_scan_arg *arg, const struct procmap_vma *record);
bool has_build_id(const struct procmap_scan_arg *arg, const struct procmap_vma *record,
		  const void *id, uint32_t size);

/* Add to each line of a file its build ID, by PROCMAP_QUERY. Returns 0 or -errno. */
int read_build_ids(int fd, struct maps *maps);

/*
 * Compare a record, or the result of a call, with the lines of smaps and their build IDs.
 * Records of a file may lack a build ID that would have to be read. A call may end early for
 * want of memory in its buffers, and for no other reason. All return a fault, or "".
 */
const char *wrong_record(const struct procmap_scan_arg *arg,
			 const struct procmap_vma *record, const struct maps_line *line);
const char *wrong_records(const struct procmap_scan_arg *arg, int nr,
			  const struct maps *maps, size_t *next);
const char *wrong_scan(const struct procmap_scan_arg *arg, int nr, const struct maps *maps);
/* Scan the whole range, from walk_end each time, with as much data as is needed. */
const char *wrong_walk(int fd, const struct scan_buffers *buffers,
		       struct procmap_scan_arg arg, const struct maps *maps);

#endif /* PROCMAP_SCAN_UTIL_H */
