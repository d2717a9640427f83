/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine of PROCMAP_SCAN.
 */
#ifndef _PROC_PROCMAP_SCAN_H
#define _PROC_PROCMAP_SCAN_H

#include <linux/compiler.h>
#include <linux/procmap_scan.h>

struct mm_struct;

/**
 * procmap_scan - handle one PROCMAP_SCAN
 * @mm: the opened address space, as for procmap_query().
 * @uarg: the caller's &struct procmap_scan_arg.
 *
 * Locks VMAs of @mm for reading repeatedly, each time a bounded number of them.
 * May sleep; the caller holds no lock.
 *
 * Return: the number of records, or a negative error:
 * Documentation/filesystems/procmap_scan.rst.
 */
long procmap_scan(struct mm_struct *mm, struct procmap_scan_arg __user *uarg);

#endif /* _PROC_PROCMAP_SCAN_H */
