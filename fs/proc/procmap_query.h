/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine of PROCMAP_QUERY.
 */
#ifndef _PROC_PROCMAP_QUERY_H
#define _PROC_PROCMAP_QUERY_H

#include <linux/compiler.h>
#include <linux/fs.h>

struct mm_struct;

/**
 * procmap_query - handle one PROCMAP_QUERY
 * @mm: the opened address space, or NULL for a kernel thread. The caller keeps
 *	it allocated (mmgrab()); it may have no users left.
 * @uquery: the caller's &struct procmap_query.
 *
 * Locks VMAs of @mm for reading. May sleep; the caller holds no lock.
 *
 * Return: 0, or a negative error: Documentation/filesystems/procmap_query.rst.
 */
int procmap_query(struct mm_struct *mm, struct procmap_query __user *uquery);

#endif /* _PROC_PROCMAP_QUERY_H */
